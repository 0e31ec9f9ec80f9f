"""Input of the benchmark as Parquet files, and the expected answers, computed by Polars; deterministic for a size."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.peers.workload import newest_of_each_key, rows_of
from benchmarks.spark_engine.queries import FILTER_ABOVE

_ROW_GROUP = 250_000
_LOOK_UPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Answers of the queries by name, as rows of JSON values, and keys to look up with their rows."""

    answers: dict[str, list[list[Any]]]
    looked_up: list[tuple[int, list[list[Any]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineData:
    """Files in ``directory``: rows with the keys 0 to ``rows``, upserts over a third more keys, and the final rows."""

    directory: Path
    rows: int
    upserts: int
    upsert_rows: int

    @property
    def load(self) -> str:
        """Path of the first rows."""
        return str(self.directory / "load.parquet")

    @property
    def final(self) -> str:
        """Path of the rows after all upserts."""
        return str(self.directory / "final.parquet")

    def upsert(self, index: int) -> str:
        """Path of the rows of one upsert, without two of the same key."""
        return str(self.directory / f"upsert-{index}.parquet")

    def make(self) -> Expected:
        """Write the files, in a process of its own, whose memory is free again before anything is measured."""
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(self._make).result()

    def _make(self) -> Expected:
        self.directory.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(7)
        parts = [rows_of(random.permutation(self.rows), random)]
        parts += [
            rows_of(random.choice(self.rows * 4 // 3, self.upsert_rows, replace=False), random)
            for _ in range(self.upserts)
        ]
        final = newest_of_each_key(parts).cast(parts[0].schema).sort_by("id")
        for path, part in zip(
            [self.load, *map(self.upsert, range(self.upserts)), self.final], [*parts, final], strict=True
        ):
            pq.write_table(part, path, compression="zstd", row_group_size=_ROW_GROUP)
        return expected_of(final)


def expected_of(rows: pa.Table) -> Expected:
    """Return the answers for a table with those rows, which are sorted by id."""
    high = rows.filter(pc.greater(rows["score"], FILTER_ABOVE))
    step = max(1, rows.num_rows // _LOOK_UPS)
    wanted = rows.take(pa.array(range(step // 2, rows.num_rows, step)))
    return Expected(
        answers={
            "scan": [
                [
                    pc.sum(rows["id"]).as_py(),
                    pc.max(rows["dt"]).as_py(),
                    pc.sum(pc.utf8_length(rows["name"])).as_py(),
                    str(pc.sum(rows["amount"]).as_py()),
                    pc.sum(rows["score"]).as_py(),
                    pc.max(rows["ts"]).as_py().isoformat(),
                ]
            ],
            "filter": [[high.num_rows, pc.sum(high["id"]).as_py(), pc.max(high["name"]).as_py()]],
            "sum of one column": [[str(pc.sum(rows["amount"]).as_py())]],
            "count(*)": [[rows.num_rows]],
        },
        looked_up=[(row["id"], [[row["id"], row["name"], str(row["amount"])]]) for row in wanted.to_pylist()],
    )
