"""One round of one system, in its own process: python -m benchmarks.peers.worker '<json>'. Prints JSON.

The operating system's caches stay warm between the works, for every system alike.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.peers.catalogue import system_called
from benchmarks.peers.system import NotOffered, System
from benchmarks.peers.workload import DAYS, Answers, Size, Workload, answers_from_json

Result = TypeVar("Result")

_ENDS = 20
"""Number of first and of last commits over which W5 is timed."""


def main(order: dict[str, Any]) -> None:
    """Carry out the order and print the measurements."""
    workload = Workload(Path(order["data"]), Size(**order["size"]))
    directory = Path(order["directory"])
    if order["part"] == "writer":
        system = system_called(order["system"], directory)
        for index in range(workload.size.writer_commits):
            system.upsert(workload.of_writer(order["writer"], index))
        return
    parts = {"bulk": bulk, "small": small, "racing": racing}
    seconds = parts[order["part"]](order, workload, directory)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "bytes": sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()),
                "files": sum(file.is_file() for file in directory.rglob("*")),
                "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def bulk(order: dict[str, Any], workload: Workload, directory: Path) -> dict[str, float]:
    """Measure W1 to W4: seconds by work."""
    answers = answers_from_json(order["answers"])
    loaded = answers_from_json(order["loaded"])
    system = system_called(order["system"], directory)
    seconds: dict[str, float] = {}
    rows = workload.load
    system.create()
    seconds["W1 load"] = timed(lambda: system.upsert(rows))[0]
    upserted = True
    try:
        seconds["W2 upsert"] = min(
            timed(lambda index=index: system.upsert(workload.upsert(index)))[0]  # type: ignore[misc]
            for index in range(workload.size.upserts)
        )
    except NotOffered:
        upserted = False
    right = answers if upserted else loaded
    seconds |= reads(system, right, "W3", order["system"])
    try:
        seconds["W4 compact"] = timed(system.compact)[0]
    except NotOffered:
        return seconds
    return seconds | reads(system, right, "W4", order["system"])


def reads(system: System, answers: Answers, work: str, name: str) -> dict[str, float]:
    """Measure scan, filter and look-ups, the best of several runs each; a cold look-up reopens the table."""

    def opened_and_looked_up() -> list[str]:
        system.open()
        return system.look_up(answers.looked_up)

    cold, names = min((timed(opened_and_looked_up) for _ in range(3)), key=lambda pair: pair[0])
    warm, names_again = min(
        (timed(lambda: system.look_up(answers.looked_up)) for _ in range(5)), key=lambda pair: pair[0]
    )
    scan, totals = min((timed(system.scan) for _ in range(2)), key=lambda pair: pair[0])
    filtering, count = min((timed(system.filter) for _ in range(2)), key=lambda pair: pair[0])
    if not totals.agrees_with(answers.totals):
        raise SystemExit(f"{name}: {work} scan answered {totals}, which is not {answers.totals}")
    if count != answers.matching_filter:
        raise SystemExit(f"{name}: {work} filter found {count} rows, not {answers.matching_filter}")
    if tuple(names) != answers.names_looked_up or names_again != names:
        raise SystemExit(f"{name}: {work} look-up answered {names}, not {answers.names_looked_up}")
    return {
        f"{work} scan": scan,
        f"{work} filter": filtering,
        f"{work} look-up cold": cold,
        f"{work} look-up warm": warm,
    }


def small(order: dict[str, Any], workload: Workload, directory: Path) -> dict[str, float]:
    """Measure W5: seconds by work."""
    system = system_called(order["system"], directory)
    system.create(partitioned=True)
    rows = [workload.small(index) for index in range(workload.size.small_commits)]
    took = [timed(lambda batch=batch: system.upsert(batch))[0] for batch in rows]  # type: ignore[misc]
    expected = len(range(0, workload.size.small_commits, DAYS)) * workload.size.small_rows

    def opened_and_counted() -> int:
        system.open()
        return system.count_day("2024-01-01")

    counting, count = timed(opened_and_counted)
    if count != expected:
        raise SystemExit(f"{order['system']}: W5 counted {count} rows of the first day, not {expected}")
    ends = min(_ENDS, len(took))
    return {
        "W5 commit first": sum(took[:ends]) / ends,
        "W5 commit last": sum(took[-ends:]) / ends,
        "W5 open and count": counting,
    }


def racing(order: dict[str, Any], workload: Workload, directory: Path) -> dict[str, float]:
    """Measure W6: one process per writer, concurrently; the time includes their start, for every system alike."""
    system = system_called(order["system"], directory)
    system.create(partitioned=True)
    orders = [json.dumps({**order, "part": "writer", "writer": writer}) for writer in range(workload.size.writers)]

    def raced() -> list[int]:
        processes = [subprocess.Popen([sys.executable, "-m", "benchmarks.peers.worker", each]) for each in orders]
        return [process.wait() for process in processes]

    seconds, codes = timed(raced)
    if any(codes):
        raise SystemExit(f"{order['system']}: W6 lost writers: {codes}")
    system.open()
    rows = sum(system.count_day(f"2024-01-{writer + 1:02d}") for writer in range(workload.size.writers))
    expected = workload.size.writers * workload.size.writer_commits * workload.size.writer_rows
    if rows != expected and order["system"].startswith("ours"):
        raise SystemExit(f"{order['system']}: W6 left {rows} rows, not {expected}")
    # A peer that loses acknowledged rows is still measured; the loss is reported next to the figure.
    return {"W6 wall": seconds, "W6 rows lost": float(expected - rows)}


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall seconds and the result."""
    begin = time.perf_counter()
    answer = work()
    return time.perf_counter() - begin, answer


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
