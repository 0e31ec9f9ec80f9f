"""TPC-H's queries as materialized tables: each is refreshed after each refresh function, and compared.

The peer is Spark: the same query over Parquet files of the same rows, computed in full and written to Parquet, in the
same session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.incremental_work.answer_check import AnswerCheck
from benchmarks.incremental_work.parquet_copies import ParquetCopies
from benchmarks.incremental_work.refresh_functions import RefreshFunctions
from benchmarks.tpch_work.tpch_tables import KEYS, queries
from benchmarks.tpch_work.upserted_table import with_plain_strings
from storage_lib.spark import create_materialized_table, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib import DynamicTable
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.spark import RefreshResult

DATABASE = "tpch"
_LARGE = 10_000
_BUCKETS = 4
_CHANGED = ("orders", "lineitem")
_REFRESHED = ("orders", "lineitem", "customer", "part", "partsupp")


@dataclass(frozen=True, slots=True, kw_only=True)
class TpchWork:
    """Queries by name to maintain, and the number of refresh pairs; the first ``warm_ups`` pairs do not count."""

    scale: float
    names: Sequence[str]
    pairs: int
    warm_ups: int
    data: Path
    directory: Path


class TpchRefreshes:
    """Runs the refreshes in one session."""

    def __init__(self, spark: SparkSession, catalog: Catalog, work: TpchWork) -> None:
        self._spark = spark
        self._work = work
        self._texts = {name: text for name, text in queries(work.scale).items() if name in work.names}
        self._plain = spark.newSession()
        self._check = AnswerCheck()
        self._copies = ParquetCopies(work.data, work.directory / "copies")
        self._sources = {name: _loaded(catalog, name, work.data) for name in KEYS}
        self._functions = RefreshFunctions({name: _rows_of(work.data, name) for name in _REFRESHED})
        self._maintained = {
            name: create_materialized_table(
                catalog, f"{DATABASE}.{name.lower()}", text, spark=spark, options={"log.system": "none"}
            )
            for name, text in self._texts.items()
        }

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield a record for each query and refresh. Raises ``WrongRowsError``."""
        self._offer(KEYS)
        yield from self._refreshed("load", -1)
        for pair in range(self._work.pairs):
            new, old = self._functions.new_orders(pair), self._functions.deleted_keys(pair)
            self._sources["orders"].append(new.orders)
            self._sources["lineitem"].append(new.lineitem)
            self._copies.insert("orders", new.orders)
            self._copies.insert("lineitem", new.lineitem)
            self._offer(_CHANGED)
            yield from self._refreshed("RF1", pair)
            lines = self._lines_of(old)
            self._sources["orders"].delete(pa.table({"o_orderkey": old}))
            self._sources["lineitem"].delete(lines)
            self._copies.delete("orders", "o_orderkey", old)
            self._copies.delete("lineitem", "l_orderkey", old)
            self._offer(_CHANGED)
            yield from self._refreshed("RF2", pair)

    def _lines_of(self, orders: pa.Array) -> pa.Table:
        columns = list(KEYS["lineitem"])
        return pq.read_table(self._copies.files["lineitem"], columns=columns, filters=[("l_orderkey", "in", orders)])

    def _offer(self, names: Sequence[str] | dict[str, Any]) -> None:
        for name in names:
            file = self._copies.files[name]
            self._plain.read.parquet(str(file)).createOrReplaceTempView(name)
            self._check.set_files(name, file)

    def _refreshed(self, function: str, pair: int) -> Iterator[dict[str, Any]]:
        for name, table in self._maintained.items():
            result, ours = _timed(lambda table=table: refresh(self._spark, table))  # type: ignore[misc]
            _, plain = _timed(lambda name=name: self._recomputed(name))  # type: ignore[misc]
            rows = self._check.check(f"{name} after {function} of pair {pair}", self._texts[name], table.to_arrow())
            yield self._record(name, function, pair, result, rows, ours, plain)

    def _recomputed(self, name: str) -> None:
        place = self._work.directory / "recomputed" / name
        self._plain.sql(self._texts[name]).write.mode("overwrite").parquet(str(place))

    def _record(
        self, name: str, function: str, pair: int, result: RefreshResult, rows: int, ours: float, plain: float
    ) -> dict[str, Any]:
        return {
            "work": "tpch",
            "scale": self._work.scale,
            "query": name,
            "function": function,
            "pair": pair,
            "counts": pair >= self._work.warm_ups,
            "mode": str(result.mode),
            "reason": result.reason,
            "rows_read": sum(result.rows_read.values()),
            "rows_written": result.rows_written,
            "rows": rows,
            "ours_seconds": round(ours, 4),
            "plain_seconds": round(plain, 4),
            "ratio": round(ours / plain, 3),
        }


def _loaded(catalog: Catalog, name: str, data: Path) -> DynamicTable:
    rows = _rows_of(data, name)
    options = {"bucket": str(_BUCKETS if rows.num_rows > _LARGE else 1), "log.system": "none"}
    table = catalog.create_table(f"{DATABASE}.{name}", rows.schema, primary_key=KEYS[name], options=options)
    table.append(rows)
    return table


def _rows_of(data: Path, name: str) -> pa.Table:
    return with_plain_strings(pq.read_table(data / f"{name}.parquet"))


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    done = work()
    return done, time.perf_counter() - begin
