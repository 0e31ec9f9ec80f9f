"""The records of clusters with one worker and with several as rows of a table."""

from __future__ import annotations

from typing import Any


def table_of(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return rows of cells, the head first; a work with several runs is summed, and so are several works."""
    rows: list[tuple[str, ...]] = [
        (
            "rows",
            "workers",
            "work",
            "seconds",
            "speed",
            "processor seconds of the workers",
            "of the busiest worker",
            "of the driver",
            "speed by processor seconds",
        )
    ]
    works = _summed(records)
    for (count, workers, work), each in works.items():
        alone = works.get((count, 1, work))
        rows.append(
            (
                f"{count:,}",
                str(workers),
                work,
                f"{each['seconds']:.1f}",
                "" if alone is None else f"{alone['seconds'] / each['seconds']:.2f}",
                f"{sum(each['workers_cpu']):.1f}",
                f"{max(each['workers_cpu']):.1f}",
                f"{each['driver_cpu']:.1f}",
                "" if alone is None else _ratio(max(alone["workers_cpu"]), max(each["workers_cpu"])),
            )
        )
    return rows


def markdown_of(records: list[dict[str, Any]]) -> str:
    """Return the table as Markdown."""
    head, *body = table_of(records)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ("---",) * len(head), *body])


def _ratio(one: float, other: float) -> str:
    """Return the quotient of processor seconds; nothing where those of processes that Spark has killed are lost."""
    return f"{one / other:.2f}" if one and other else ""


def _summed(records: list[dict[str, Any]]) -> dict[tuple[int, int, str], dict[str, Any]]:
    """Return the sums of the runs of each work, by number of rows, number of workers, and work."""
    sums: dict[tuple[int, int, str], dict[str, Any]] = {}
    for each in records:
        _add(sums, (each["rows"], each["workers"], each["work"]), each)
    if len({work for _, _, work in sums}) > 1:
        for (rows, workers, _), each in list(sums.items()):
            _add(sums, (rows, workers, "all works"), each)
    return sums


def _add(sums: dict[tuple[int, int, str], dict[str, Any]], key: tuple[int, int, str], each: dict[str, Any]) -> None:
    known = sums.setdefault(key, {"seconds": 0.0, "driver_cpu": 0.0, "workers_cpu": [0.0] * key[1]})
    known["seconds"] += each["seconds"]
    known["driver_cpu"] += each["driver_cpu"]
    known["workers_cpu"] = [one + other for one, other in zip(known["workers_cpu"], each["workers_cpu"], strict=True)]
