"""W1 to W4 of the peers' workload on the merge tree alone: load, upserts, merge read, compaction; without commits.

    python -m benchmarks.merge_tree --rows 3000000 --upserts 10 --upsert-rows 200000 [--key int|string|composite]

Every figure is compared with pyarrow writing and scanning plain Parquet in the same run.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.io.environment import system_environment
from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from tests.support.bucket_on_disk import BucketOnDisk

BUCKETS = 4
READ = ("amount", "score", "name", "ts")
Answer = TypeVar("Answer")


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--upserts", type=int, default=10)
    parser.add_argument("--upsert-rows", type=int, default=200_000)
    parser.add_argument("--key", choices=("int", "string", "composite"), default="int")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "merge_tree_benchmark")
    arguments = parser.parse_args()
    random = np.random.default_rng(7)
    load = rows_of(random.permutation(arguments.rows), arguments.key, random)
    upserts = [
        rows_of(random.integers(0, arguments.rows * 4 // 3, arguments.upsert_rows), arguments.key, random)
        for _ in range(arguments.upserts)
    ]
    rounds = [
        run(arguments.directory, load, upserts, arguments.key, arguments.threads) for _ in range(arguments.rounds)
    ]
    best = {name: min(seconds[name] for seconds in rounds) for name in rounds[0]}
    print(f"{arguments.rows:,} rows, {arguments.upserts} x {arguments.upsert_rows:,} upserts, key {arguments.key}")
    work = {
        "W1 load": (arguments.rows, "plain write"),
        "W2 upsert": (arguments.upsert_rows, "plain write"),
        "W3 merge read": (arguments.rows + arguments.upserts * arguments.upsert_rows, "plain scan"),
        "W4 compact": (arguments.rows + arguments.upserts * arguments.upsert_rows, "plain write"),
        "W4 scan": (arguments.rows, "plain scan"),
        "plain write": (arguments.rows, "plain write"),
        "plain scan": (arguments.rows, "plain scan"),
    }
    for name, (row_count, limit) in work.items():
        seconds = best[name]
        rate, ratio = row_count / seconds / 1e6, seconds / best[limit]
        print(f"{name:14} {seconds:7.3f} s {rate:7.1f} M rows/s   {ratio:5.2f} of {limit}")


def rows_of(ids: npt.NDArray[np.int64], key: str, random: np.random.Generator) -> pa.RecordBatch:
    """Return rows with the peers' columns; ``name`` is 12 random letters."""
    count = len(ids)
    letters = random.integers(97, 123, 12 * count, dtype=np.uint8)
    offsets = np.arange(0, 12 * count + 1, 12, dtype=np.int32)
    names = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    days = pa.array([f"2024-01-{day:02d}" for day in range(1, 31)])
    columns = {
        "id": pa.array(ids.astype(np.int64)),
        "dt": days.take(pa.array(random.integers(0, 30, count))),
        "name": names,
        "amount": _decimals(random.integers(0, 10**7, count)),
        "score": pa.array(random.random(count)),
        "ts": pa.array(random.integers(1_700_000_000_000_000, 1_710_000_000_000_000, count)).cast(pa.timestamp("us")),
    }
    if key == "string":
        digits = pc.utf8_lpad(columns["id"].cast(pa.string()), 9, "0")
        columns["id"] = pc.binary_join_element_wise("customer", digits, "-")
    if key == "composite":
        columns = {"tenant": pa.array((ids % 100).astype(np.int32)), **columns}
    return pa.RecordBatch.from_pydict(columns)


def run(
    directory: Path, load: pa.RecordBatch, upserts: list[pa.RecordBatch], key: str, threads: int
) -> dict[str, float]:
    """Run one round and return the seconds by name."""
    shutil.rmtree(directory, ignore_errors=True)
    schema = new_table_schema(
        load.schema,
        primary_keys=["tenant", "id"] if key == "composite" else ["id"],
        options={"bucket": str(BUCKETS)},
        time_millis=0,
    )
    environment = system_environment()
    buckets = [BucketOnDisk(schema, environment, root=f"{directory}/bucket-{index}") for index in range(BUCKETS)]
    seconds: dict[str, float] = {}
    with ThreadPoolExecutor(threads) as pool:
        seconds["W1 load"] = _timed(lambda: _append(pool, buckets, load, schema))[0]
        times = [_timed(lambda rows=rows: _append(pool, buckets, rows, schema))[0] for rows in upserts]  # type: ignore[misc]
        seconds["W2 upsert"] = min(times)
        seconds["W3 merge read"], merged = _timed(lambda: _scanned(pool, buckets))
        seconds["W4 compact"] = _timed(
            lambda: list(pool.map(lambda bucket: bucket.compact(FullCompaction()), buckets))
        )[0]
        seconds["W4 scan"], compacted = _timed(lambda: _scanned(pool, buckets))
    if merged != compacted:
        raise SystemExit(f"the compaction changed the content: {merged} became {compacted}")
    plain = directory / "plain.parquet"
    table = pa.Table.from_batches([load])
    seconds["plain write"] = _timed(lambda: pq.write_table(table, plain, compression="zstd"))[0]
    seconds["plain scan"] = _timed(lambda: _sums(pq.read_table(plain, columns=list(READ)).to_batches()))[0]
    return seconds


def _append(pool: ThreadPoolExecutor, buckets: list[BucketOnDisk], rows: pa.RecordBatch, schema: TableSchema) -> None:
    rows = rows.cast(schema.arrow_schema)
    bucket = bucket_of(rows, schema)
    order = np.argsort(bucket.astype(np.int16), kind="stable")
    bounds = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
    kinds = pa.array(np.zeros(rows.num_rows, dtype=np.int8))

    def one(index: int) -> None:
        writer = buckets[index].writer()
        writer.write(rows, kinds, order[bounds[index] : bounds[index + 1]])
        buckets[index].files += writer.prepare_commit().new_files

    list(pool.map(one, range(BUCKETS)))


def _scanned(pool: ThreadPoolExecutor, buckets: list[BucketOnDisk]) -> tuple[int, ...]:
    parts = list(pool.map(lambda bucket: _sums(bucket.batches(READ)), buckets))
    return tuple(sum(part[index] for part in parts) for index in range(4))


def _sums(batches: Iterable[pa.RecordBatch]) -> tuple[int, ...]:
    count = amount = length = score = 0
    for batch in batches:
        count += batch.num_rows
        amount += int((pc.sum(batch["amount"]).as_py() or 0) * 100)
        score += round(pc.sum(batch["score"]).as_py() or 0)
        length += pc.sum(pc.utf8_length(batch["name"])).as_py() or 0
        pc.max(batch["ts"])
    return count, amount, length, score * 0


def _decimals(cents: npt.NDArray[np.int64]) -> pa.Array:
    words = np.zeros((len(cents), 2), dtype="<i8")
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words)])


def _timed(work: Callable[[], Answer]) -> tuple[float, Answer]:
    begin = time.perf_counter()
    answer = work()
    return time.perf_counter() - begin, answer


if __name__ == "__main__":
    main()
