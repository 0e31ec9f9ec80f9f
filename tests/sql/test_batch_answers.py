"""Random queries over tables of which some rows have to be merged give DuckDB's answers.

The columns and conditions of a query prune what is read, so a mistake there would be a wrong answer.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from storage_lib.sql import Session
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

LEFT = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("p", pa.string(), nullable=False),
        ("a", pa.int32()),
        ("b", pa.int64()),
        ("s", pa.string()),
        ("d", pa.decimal128(10, 2)),
    ]
)
RIGHT = pa.schema([pa.field("k", pa.int64(), nullable=False), ("a", pa.int32()), ("x", pa.int64()), ("s", pa.string())])
CONDITIONS = (
    "{t}.k between 10 and 30",
    "{t}.k = 17",
    "{t}.k in (1, 5, 9, null)",
    "{t}.a > 3",
    "{t}.a = 2 or {t}.s = 'b'",
    "not ({t}.a < 5)",
    "{t}.s like 'a%'",
    "{t}.s is null",
    "{t}.a <> 1 and {t}.s is not null",
    "coalesce({t}.a, 0) + {t}.k > 20",
    "({t}.k < 5 or {t}.k > 50)",
)
ONLY_LEFT = ("t.p = 'x'", "t.p in ('x', 'z') and t.k > 3", "t.p > 'w' and t.d > 1.5", "t.d = 2.50")
ITEMS = (
    "count(*) AS n",
    "count(t.a) AS n, sum(t.a) AS s",
    "min(t.s) AS lo, max(t.k) AS hi",
    "count(DISTINCT t.s) AS n",
)
SHAPES = (
    "SELECT {items} FROM t WHERE {c}",
    "SELECT t.p, {items} FROM t WHERE {c} GROUP BY t.p",
    "SELECT t.k, t.s FROM t WHERE {c}",
    "SELECT * FROM t WHERE {c}",
    "SELECT q.k FROM (SELECT * FROM t) AS q JOIN (SELECT * FROM u) AS r ON q.k = r.k WHERE r.a > 2",
    "SELECT t.k, u.x FROM t {join} JOIN u ON t.k = u.k AND {cu} WHERE {c}",
    "SELECT t.k, u.x FROM t {join} JOIN u ON t.k = u.k AND t.a = u.a",
    "SELECT t.k FROM t WHERE {c} AND t.k IN (SELECT u.k FROM u WHERE {cu})",
    "SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.a >= t.a) AND {c}",
    "SELECT t.k FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k AND {cu})",
    "SELECT t.k FROM t WHERE t.k NOT IN (SELECT u.k FROM u WHERE {cu})",
    "SELECT t.k, (SELECT max(u.x) FROM u WHERE u.k = t.k) AS m FROM t WHERE {c}",
    "SELECT {items} FROM t WHERE t.b > (SELECT avg(u.x) FROM u WHERE {cu})",
    "WITH q AS (SELECT k, a, s FROM t WHERE {c}) SELECT x.k, y.a FROM q AS x JOIN q AS y ON x.a = y.k",
    "WITH q AS (SELECT * FROM t) SELECT k FROM q WHERE a > 6 UNION ALL SELECT k FROM q WHERE a < 2",
    "SELECT k, a, s FROM (SELECT k, a, s FROM t UNION ALL SELECT k, a, s FROM u) AS q WHERE q.a > 2 AND q.k < 40",
    "SELECT k, s FROM t INTERSECT SELECT k, s FROM u",
    "SELECT k, a FROM t EXCEPT SELECT k, a FROM u WHERE {cu}",
    "SELECT k FROM (SELECT t.k, row_number() OVER (PARTITION BY t.p ORDER BY t.k DESC) AS n FROM t) AS q WHERE n < 4",
    "SELECT t.p, count(*) AS n FROM t WHERE {c} GROUP BY t.p HAVING count(*) > 2",
    "SELECT DISTINCT t.s FROM t WHERE {c}",
    "SELECT k, s FROM t NATURAL JOIN (SELECT k, x FROM u) AS v WHERE x > 100",
    "SELECT t.k FROM t WHERE {c} ORDER BY t.k LIMIT 5",
    "SELECT t.k, t.p FROM t WHERE {l}",
    # Spark simplifies expressions on columns that are NOT NULL.
    "SELECT count(t.k) AS n FROM t",
    "SELECT count(t.k) AS n, count(t.p) AS m FROM t WHERE {c}",
    "SELECT t.a FROM t WHERE t.k IS NOT NULL AND t.p IS NOT NULL",
    "SELECT t.a FROM t WHERE t.k = t.k",
    "SELECT t.a FROM t WHERE t.k > 20 OR t.k <= 20",
    "SELECT t.a, count(t.k) AS n FROM t GROUP BY t.a HAVING count(t.k) > 0",
    "SELECT t.a, CASE WHEN t.k IS NULL THEN 'none' ELSE 'some' END AS e FROM t",
    "SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = u.k AND u.a = t.a)",
    "SELECT t.a FROM t WHERE t.b > (SELECT count(u.k) FROM u)",
    "SELECT t.p, sum(u.x) AS s FROM t JOIN u ON t.a = u.a WHERE {l} AND {cu} GROUP BY t.p",
)


def random_rows(rng: Random, schema: pa.Schema, keys: range) -> list[dict[str, Any]]:
    values: dict[str, Callable[[], Any]] = {
        "p": lambda: rng.choice(["x", "y", "z"]),
        "a": lambda: rng.choice([None, *range(10)]),
        "b": lambda: rng.choice([None, rng.randint(0, 300)]),
        "x": lambda: rng.choice([None, rng.randint(0, 300)]),
        "s": lambda: rng.choice([None, "a", "ab", "b", ""]),
        "d": lambda: rng.choice([None, Decimal(1), Decimal("2.5"), Decimal(3)]),
    }
    return [{"k": key, **{name: values[name]() for name in schema.names if name != "k"}} for key in keys]


def filled(rng: Random, table: DynamicTable, schema: pa.Schema, keys: tuple[str, ...]) -> pa.Table:
    """Write some rows, compact, and write others over a part of them; return the rows of the table."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for step, part in enumerate((range(60), range(20, 35), range(25, 30), range(70, 80))):
        new = random_rows(rng, schema, part)
        table.append(pa.Table.from_pylist(new, schema=schema))
        rows |= {tuple(row[key] for key in keys): row for row in new}
        if step == 0:
            table.compact()
    table.delete("k between 40 and 44")
    return pa.Table.from_pylist([row for row in rows.values() if not 40 <= row["k"] <= 44], schema=schema)


def random_query(rng: Random) -> str:
    t = rng.choice([*CONDITIONS, *ONLY_LEFT]).format(t="t")
    if rng.random() < 0.3:
        t = f"{t} AND {rng.choice(CONDITIONS).format(t='t')}"
    return rng.choice(SHAPES).format(
        items=rng.choice(ITEMS),
        c=t,
        l=rng.choice(ONLY_LEFT),
        cu=rng.choice(CONDITIONS).format(t="u"),
        join=rng.choice(["INNER", "LEFT", "RIGHT", "FULL"]),
    )


class Answers:
    """The same rows in our tables and in DuckDB."""

    def __init__(self, spark: SparkSession, directory: Path, seed: int) -> None:
        from storage_lib.sql import Session

        rng = Random(seed)  # noqa: S311  reproducible
        catalog = open_catalog(str(directory / "warehouse"), {"log.system": "none"})
        left = catalog.create_table(
            "default.t", LEFT, primary_key=("k", "p"), partition_by=("p",), options={"bucket": "1"}
        )
        right = catalog.create_table("default.u", RIGHT, primary_key=("k",), options={"bucket": "2"})
        self.sql: Session = Session(spark, catalog)
        self.duckdb = duckdb.connect()
        self.duckdb.register("t", filled(rng, left, LEFT, ("k", "p")))
        self.duckdb.register("u", filled(rng, right, RIGHT, ("k",)))

    def ours(self, query: str) -> list[str]:
        return comparable(self.sql.execute(query).to_arrow().to_pylist())

    def theirs(self, query: str) -> list[str]:
        answer: Any = self.duckdb.sql(query).to_arrow_table()
        return comparable(answer.to_pylist())


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as sorted text: numbers of both engines have different types."""
    return sorted(str([_plain(value) for value in row.values()]) for row in rows)


def _plain(value: Any) -> str | float | None:
    return value if value is None or isinstance(value, str) else float(value)


@pytest.mark.parametrize("seed", thinned(range(2)))
def test_random_queries_give_the_answers_of_duckdb(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    answers = Answers(spark, tmp_path, seed)
    rng = Random(seed)  # noqa: S311  reproducible

    for query in (random_query(rng) for _ in range(20)):
        assert answers.ours(query) == answers.theirs(query), query
