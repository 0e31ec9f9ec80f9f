"""Cost of the Iceberg view: a commit to a table with a view, compared with the same commit to one without.

    python -m benchmarks.iceberg_view [--rows 1000000] [--commits 15] [--format-version 2] [--key name]

The key is a BIGINT, or a STRING by ``--key name``. Each round upserts the same rows into both tables, in turns; keys
are random, or next to each other. *view* is the time that publishing takes alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from storage_lib import DynamicTable, open_catalog

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("price", pa.float64()),
    ]
)
UPSERTS = (1_000, 100_000)
VIEW = {"metadata.iceberg.storage": "table-location"}


def main() -> None:
    """Run the benchmark and print one JSON record per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=15)
    parser.add_argument("--format-version", choices=["2", "3"], default="3")
    parser.add_argument("--key", choices=["id", "name"], default="id")
    arguments = parser.parse_args()
    view = {**VIEW, "metadata.iceberg.format-version": arguments.format_version}
    scratch = Path(tempfile.mkdtemp(prefix="iceberg-view-"))
    try:
        for count in UPSERTS:
            for spread in ("random", "neighbouring"):
                place = scratch / f"{count}-{spread}"
                figures = _upserts(
                    place, view, arguments.rows, count, spread, key=arguments.key, commits=arguments.commits
                )
                print(json.dumps(figures))
    finally:
        shutil.rmtree(scratch)


def _upserts(
    scratch: Path, view: dict[str, str], rows: int, count: int, spread: str, *, key: str, commits: int
) -> dict[str, object]:
    catalog = open_catalog(str(scratch), {"log.system": "none"})
    options = {"bucket": "2", "write-only": "true"}
    plain = catalog.create_table("bench.plain", COLUMNS, primary_key=[key], options=options)
    shown = catalog.create_table("bench.shown", COLUMNS, primary_key=[key], options={**options, **view})
    for table in (plain, shown):
        table.append(rows_of(np.arange(rows), 0))
        table.compact()
    rng = np.random.default_rng(1)
    publishing = _Publishing(shown)
    seconds: dict[str, list[float]] = {"plain": [], "shown": []}
    for number in range(commits):
        first = int(rng.integers(rows - count)) if spread == "neighbouring" else 0
        keys = np.arange(first, first + count) if spread == "neighbouring" else rng.choice(rows, count, replace=False)
        changed = rows_of(keys, number + 1)
        for name, table in (("plain", plain), ("shown", shown)):
            seconds[name].append(_timed(partial(table.upsert, changed)))
    of_plain, of_shown = (statistics.median(each) for each in seconds.values())
    return {
        "work": f"upsert of {count} {spread} keys into {rows} rows, {commits} commits",
        "seconds_median": of_plain,
        "seconds_with_view_median": of_shown,
        "seconds_of_view_median": statistics.median(publishing.seconds[-commits:]),
        "times": of_shown / of_plain,
        "bytes_of_view": sum(each.stat().st_size for each in Path(shown.location, "metadata").iterdir()),
    }


class _Publishing:
    """Times each publication of a table's view."""

    def __init__(self, table: DynamicTable) -> None:
        view = table.context.iceberg_view
        assert view is not None  # noqa: S101  created with one
        self.seconds: list[float] = []
        self._catch_up: Callable[[], int | None] = view.catch_up
        view.catch_up = self._timed  # type: ignore[method-assign]

    def _timed(self) -> int | None:
        started = time.perf_counter()
        try:
            return self._catch_up()
        finally:
            self.seconds.append(time.perf_counter() - started)


def _timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def rows_of(keys: np.ndarray[tuple[int], np.dtype[np.int64]], number: int) -> pa.Table:
    """Return the rows of these keys as commit ``number`` writes them."""
    names = pa.array([f"name-{key}" for key in keys.tolist()])
    return pa.table([pa.array(keys), names, pa.array(keys * 7 + number), pa.array(keys / 3)], schema=COLUMNS)


if __name__ == "__main__":
    main()
