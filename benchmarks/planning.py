"""Planning and committing with many files; the cost has to depend on the request, not on the table's size.

    python -m benchmarks.planning [--files 100000] [--partitions 1000] [--commits 1000]

*plan*: a fresh process plans a scan of one partition of a table with many files. Its manifests come from the
library's own commits and manifest merges, over data files that do not exist. *commit*: consecutive one-row commits.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from storage_lib import DynamicTable, open_catalog
from storage_lib.file_store.commit_message import CommitMessage, Committable
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.schema.encoding.binary_row import encode_row
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.column_stats import ColumnStats, encode_stats
from storage_lib.schema.placing.partition import PartitionCodec

COLUMNS = pa.schema([("dt", pa.string()), ("id", pa.int64()), ("amount", pa.float64()), ("name", pa.string())])
ROUNDS = 7


def main() -> None:
    """Run the benchmark and print one JSON record per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=1_000)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="planning-"))
    try:
        for record in (
            *_plan(scratch, arguments.files, arguments.partitions),
            *_commits(scratch, arguments.commits),
        ):
            print(json.dumps(record))
    finally:
        shutil.rmtree(scratch)


def _plan(scratch: Path, files: int, partitions: int) -> list[dict[str, object]]:
    by_day = _new_table(scratch, "by_day")
    per_commit = max(1, files // partitions)
    for number in range(partitions):
        _commit_files(by_day, [(_day(number), n) for n in range(per_commit)])
    across = _new_table(scratch, "across")
    each = 4 * partitions
    for start in range(0, files, each):
        _commit_files(across, [(_day(n % partitions), start + n) for n in range(min(each, files - start))])
    records = []
    for table, written in ((by_day, "a partition a commit"), (across, "all partitions in each commit")):
        seconds, cpu_seconds, opened, planned = _measured(table, _day(partitions // 2))
        records.append(
            {
                "work": f"plan one of {partitions} partitions, {files} files, {written}",
                "seconds_min": min(seconds),
                "seconds_median": statistics.median(seconds),
                "seconds_cpu_min": min(cpu_seconds),
                "files_planned": planned,
                "manifests": table.inspect.system_table("manifests").num_rows,
                "manifests_opened": opened,
            }
        )
    return records


def _measured(table: DynamicTable, day: str) -> tuple[list[float], list[float], int, int]:
    """Return wall and CPU seconds for a table reopened each time, manifests opened, and files planned."""
    seconds, cpu_seconds = [], []
    opened = planned = 0
    for _ in range(ROUNDS):
        fresh = open_catalog(table.address.warehouse).load_table(table.name)
        started, cpu_started = time.perf_counter(), time.process_time()
        planned = len(fresh.new_read(filter=col("dt") == day).plan().entries)
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
        opened = len(fresh.context.file_store._manifests._manifests._values)  # noqa: SLF001  the cache of parsed manifests
    return seconds, cpu_seconds, opened, planned


def _commits(scratch: Path, commits: int) -> list[dict[str, object]]:
    table = _new_table(scratch, "commits", partition_by=[])
    seconds, cpu_seconds = [], []
    for number in range(commits):
        rows = pa.table({"dt": ["a"], "id": [number], "amount": [1.0], "name": ["x"]})
        started, cpu_started = time.perf_counter(), time.process_time()
        table.append(rows)
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
    part = max(1, commits // 10)
    return [
        {
            "work": f"{commits} commits of one row in a row, {which} tenth",
            "seconds_min": min(seconds[of]),
            "seconds_median": statistics.median(seconds[of]),
            "seconds_cpu_median": statistics.median(cpu_seconds[of]),
        }
        for which, of in (("first", slice(part)), ("last", slice(-part, None)))
    ]


def _new_table(scratch: Path, name: str, partition_by: list[str] | None = None) -> DynamicTable:
    catalog = open_catalog(str(scratch), {"log.system": "none"})
    keys = ["dt"] if partition_by is None else partition_by
    return catalog.create_table(f"bench.{name}", COLUMNS, primary_key=[*keys, "id"], partition_by=keys)


def _commit_files(table: DynamicTable, files: list[tuple[str, int]]) -> None:
    """Commit files that do not exist: one for each (partition, key)."""
    codec = PartitionCodec(table.schema)
    messages = tuple(
        CommitMessage(
            partition=codec.encode({"dt": day}),
            bucket=0,
            bucket_count=1,
            increment=Increment(new_files=(_file(table, day, key),)),
        )
        for day, key in files
    )
    table.context.file_store.commit.commit(
        Committable(commit_user=table.environment.new_name(), commit_identifier=1, messages=messages)
    )


def _file(table: DynamicTable, day: str, key: int) -> DataFileMeta:
    schema = table.schema
    stats = [
        ColumnStats(min=low, max=high, null_count=0, row_count=1000)
        for low, high in ((day, day), (key, key + 1000), (0.5, 99.5), ("alpha", "omega"))
    ]
    key_types = [field.type for field in schema.key_fields]
    return DataFileMeta(
        file_name=f"data-{table.environment.new_name()}-0.parquet",
        file_size=1 << 20,
        row_count=1000,
        min_key=encode_row([key], key_types),
        max_key=encode_row([key + 1000], key_types),
        key_stats=encode_stats(stats[1:2], schema.key_fields),
        value_stats=encode_stats(stats, schema.fields),
        min_sequence_number=1,
        max_sequence_number=1000,
        schema_id=schema.id,
        level=0,
        creation_time_ms=table.environment.clock.now_millis(),
    )


def _day(number: int) -> str:
    return f"day-{number:05d}"


if __name__ == "__main__":
    main()
