"""Random expressions computed by Spark, and by DuckDB from the statements that a refresh would run there.

    python -m tests.spark.materialized.exact_values --seed-from 0 --seed-to 100

compares more of them than the tests do.
"""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from pyspark.errors import PySparkException

from storage_lib.materialized.algebra import ExactDuckDb, NotExactError, compile_query, read_type
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.materialized.algebra.random_expressions import COLUMNS, TABLE, RandomExpressions, random_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 60
_TYPES = {"id": pa.int32(), "tiny": pa.int8(), "small": pa.int16(), "i": pa.int32(), "j": pa.int32(), "big": pa.int64()}
_TYPES |= {"money": pa.decimal128(15, 2), "rate": pa.decimal128(6, 4), "whole": pa.decimal128(9, 0)}
_TYPES |= {"text": pa.string(), "word": pa.string(), "day": pa.date32(), "flag": pa.bool_()}
_TYPES |= {"d": pa.float64(), "e": pa.float64(), "at": pa.timestamp("us", "UTC"), "until": pa.timestamp("us", "UTC")}
_TYPES |= {"plain": pa.timestamp("us")}


@dataclass
class Compared:
    """Counts of expressions with equal values, and that failed in both engines; queries with another outcome."""

    equal: int = 0
    different: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    failed: int = 0
    failed_in_duckdb: list[str] = field(default_factory=list)
    failed_in_spark: list[str] = field(default_factory=list)


def compare(spark: SparkSession, seed: int, count: int) -> Compared:
    """Compare ``count`` expressions and as many aggregates."""
    rng = Random(seed)  # noqa: S311  chance, not secrets
    rows = random_rows(rng)
    spark.createDataFrame(rows).createOrReplaceTempView("t")
    database = duckdb.connect()
    database.register("t", rows)
    found = Compared()
    expressions = RandomExpressions(rng)
    for _ in range(count):
        _compare(spark, database, f"SELECT id, {expressions.value()} AS v FROM t", found)  # noqa: S608
        keys = rng.choice(["flag", "tiny", "text", "flag, j"])
        query = f"SELECT {keys}, {expressions.aggregate()} AS v FROM t GROUP BY {keys}"  # noqa: S608
        _compare(spark, database, query, found)
    return found


def _compare(spark: SparkSession, database: duckdb.DuckDBPyConnection, query: str, found: Compared) -> None:
    compiled = compile_query(query, [TABLE], database="shop")
    kinds = {name: read_type(kind) for name, kind in TABLE.columns}
    dialect = ExactDuckDb(lambda _, column: kinds[column])
    try:
        assert compiled.tree is not None, (query, compiled.reason)
        types = dialect.types_of(compiled.tree)
        text = compiled.full(lambda *_: "t", dialect=dialect)
    except NotExactError as error:
        found.refused.append(f"{error}: {query}")
        return
    df = spark.sql(query if SparkFeature.DOUBLED_QUOTES.is_here else query.replace("x''y", r"x\'y"))
    of_spark = tuple(each.dataType.simpleString() for each in df.schema.fields)
    expected = _outcome(lambda: [tuple(row) for row in df.collect()])
    own = _outcome(lambda: database.execute(text).fetchall())
    if expected is None or own is None:
        found.failed += expected is None and own is None
        if own is None and expected is not None:
            found.failed_in_duckdb.append(query)
        if own is not None and expected is None:
            found.failed_in_spark.append(query)
        return
    if types != of_spark:
        found.different.append(f"{query}: {types} in DuckDB, {of_spark} in Spark")
    elif Counter(own) != Counter(expected):
        one, other = Counter(own) - Counter(expected), Counter(expected) - Counter(own)
        found.different.append(f"{query}: {list(one)[:2]} in DuckDB, {list(other)[:2]} in Spark")
    else:
        found.equal += 1


def outcome(spark: SparkSession, query: str) -> tuple[tuple[str, ...], list[str]] | None:
    """Return the types and the rows, as texts, of a query in Spark; None if it fails."""
    try:
        df = spark.sql(query)
        rows = [repr(tuple(row)) for row in df.collect()]
    except PySparkException:
        return None
    return tuple(each.dataType.simpleString() for each in df.schema.fields), rows


def _outcome(compute: Any) -> list[tuple[Any, ...]] | None:
    try:
        rows: list[tuple[Any, ...]] = compute()
    except (PySparkException, duckdb.Error):
        return None
    return rows


def random_rows(rng: Random) -> pa.Table:
    """Return rows; of a third of the seeds, with the largest numbers, for which many expressions fail."""
    given: Sequence[tuple[Any, ...]] = [random_row(rng, number) for number in range(_ROWS)]
    if rng.random() < 0.7:
        given = [tuple(None if _is_large(value) else value for value in row) for row in given]
    columns = list(zip(*given, strict=True))
    names = ["id", *(name for name, _ in COLUMNS)]
    return pa.table({name: pa.array(values, _TYPES[name]) for name, values in zip(names, columns, strict=True)})


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > 10**9


def main() -> None:
    """Compare, and print the counts."""
    from storage_lib.spark import session

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed-from", type=int, default=0)
    parser.add_argument("--seed-to", type=int, default=10)
    parser.add_argument("--count", type=int, default=100)
    arguments = parser.parse_args()
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    for seed in range(arguments.seed_from, arguments.seed_to):
        found = compare(spark, seed, arguments.count)
        print(f"{seed}: {found.equal} equal, {len(found.different)} DIFFERENT, {len(found.refused)} refused,", end=" ")
        print(f"{found.failed} failed, {len(found.failed_in_duckdb)} in DuckDB only,", end=" ")
        print(f"{len(found.failed_in_spark)} in Spark only", flush=True)
        shown = (*found.refused[:3], *found.failed_in_duckdb[:2], *found.failed_in_spark[:2])
        for query in (*found.different, *shown):
            print("   ", query[:330])


if __name__ == "__main__":
    main()
