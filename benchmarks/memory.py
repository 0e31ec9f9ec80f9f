"""Memory of writing, upserting, compacting and reading a table that is ten times larger than the memory limit.

    python -m benchmarks.memory [--limit-mb 400] [--times 10]

Each size runs in its own process, with a memory limit by a cgroup if the user may create one, and the peak of its
anonymous memory is sampled. Prints a table and writes ``benchmarks/results/memory.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.peers.workload import SCHEMA, rows_of
from storage_lib import open_catalog

RESULTS = Path(__file__).parent / "results" / "memory.json"
CHUNK_ROWS = 250_000
UPSERTS = 3
MEGABYTE = 1024 * 1024
SIZES = (0.25, 0.5, 1.0)
_SAMPLE_SECONDS = 0.02


def main() -> None:
    """Run all sizes, or with ``--work`` one size in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-mb", type=int, default=400)
    parser.add_argument("--times", type=float, default=10, help="size of the largest table in limits, as Arrow rows")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "memory_benchmark")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        print(json.dumps(work(arguments.work, arguments.directory)))
        return
    row_bytes = rows_of(np.arange(CHUNK_ROWS), np.random.default_rng(1)).nbytes / CHUNK_ROWS
    rows_max = int(arguments.times * arguments.limit_mb * MEGABYTE / row_bytes)
    records = []
    print("| rows | as Arrow | on disk | memory limit | write s | upsert s | compact s | read s | peak of each (MB) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for share in SIZES:
        rows = int(rows_max * share)
        record = limited(rows, arguments.directory, arguments.limit_mb)
        record |= {"rows": rows, "arrow_bytes": int(rows * row_bytes)}
        records.append(record)
        seconds, peaks = record["seconds"], record["peak_bytes"]
        print(
            f"| {rows:,} | {rows * row_bytes / MEGABYTE:,.0f} MB | {record['disk_bytes'] / MEGABYTE:,.0f} MB "
            f"| {'none' if record['limit_bytes'] is None else arguments.limit_mb} | "
            + " | ".join(f"{seconds[name]:.1f}" for name in seconds)
            + " | "
            + ", ".join(f"{peak / MEGABYTE:.0f}" for peak in peaks.values())
            + " |",
            flush=True,
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(records, indent=1) + "\n")


def limited(rows: int, directory: Path, limit_mb: int) -> dict[str, Any]:
    """Run one size in a process; in the result, ``limit_bytes`` is None if no limit could be set."""
    command = [sys.executable, "-m", "benchmarks.memory", "--work", str(rows), "--directory", str(directory)]
    with memory_group(limit_mb * MEGABYTE) as group:
        enter = None if group is None else lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode != 0:
        raise SystemExit(f"{rows:,} rows in {limit_mb} MB: exit {done.returncode}\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**answer, "limit_bytes": None if group is None else limit_mb * MEGABYTE}


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path | None]:
    """Yield a cgroup (version 1 or 2) with that limit; None if this user may not create one."""
    root = next((path for path in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if path.is_dir()), None)
    group = None if root is None else root / f"dynamic-tables-{os.getpid()}"
    try:
        if group is not None:
            group.mkdir()
            knobs = [group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()]
            knobs[0].write_text(str(limit_bytes))
    except (OSError, IndexError):
        if group is not None and group.is_dir():
            group.rmdir()
        group = None
    try:
        yield group
    finally:
        if group is not None:
            group.rmdir()


def work(rows: int, directory: Path) -> dict[str, Any]:
    """Write, upsert, compact and read a table; checks its content by row count and sum of ids."""
    shutil.rmtree(directory, ignore_errors=True)
    table = open_catalog(str(directory)).create_table(
        "db.t",
        SCHEMA,
        primary_key=["id"],
        options={"bucket": "4", "write-buffer-size": "64mb", "target-file-size": "64mb", "write-only": "true"},
    )
    seconds: dict[str, float] = {}
    peaks: dict[str, int] = {}

    def measured(name: str, act: Callable[[], object]) -> None:
        with sampled() as peak:
            begin = time.perf_counter()
            act()
            seconds[name] = time.perf_counter() - begin
        peaks[name] = peak[0]

    upserted = rows // 20
    seen = {"count": 0, "ids": 0}

    def read() -> None:
        for batch in table.read():
            seen["count"] += batch.num_rows
            seen["ids"] += pc.sum(batch.column("id")).as_py() or 0

    def upsert() -> None:
        for index in range(UPSERTS):
            table.append(generated(upserted, rows, seed=index + 2))

    measured("write", lambda: table.append(generated(rows, rows, seed=1)))
    measured("upsert", upsert)
    measured("compact", table.compact)
    measured("read", read)
    if seen != {"count": rows, "ids": rows * (rows - 1) // 2}:
        raise SystemExit(f"{rows:,} rows were written, and these are read: {seen}")
    disk = sum(file.stat().st_size for file in directory.rglob("*.parquet"))
    shutil.rmtree(directory)
    return {"seconds": seconds, "peak_bytes": peaks, "disk_bytes": disk}


def generated(count: int, id_count: int, *, seed: int) -> pa.RecordBatchReader:
    """Return rows with ids spread over the range, each id at most once, generated chunk by chunk."""
    random = np.random.default_rng(seed)
    step = next(step for step in range(id_count * 3 // 5, id_count * 2) if np.gcd(step, id_count) == 1)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, count, CHUNK_ROWS):
            places = np.arange(start, min(count, start + CHUNK_ROWS), dtype=np.int64)
            yield from rows_of(places * step % id_count, random).to_batches()

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@contextmanager
def sampled() -> Iterator[list[int]]:
    """Yield a list whose element is the peak of this process's anonymous memory in bytes when the block has ended."""
    peak = [0]
    ended = threading.Event()
    page = os.sysconf("SC_PAGE_SIZE")

    def sample() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
            peak[0] = max(peak[0], (int(resident) - int(shared)) * page)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main()
