"""Queries that manifests answer: the same answers as from the files, and no answer where metadata is not exact."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn, AlterType, DropColumn, RenameColumn, SetOption, open_catalog
from storage_lib.errors import InvalidInputError
from storage_lib.spark import write_stream
from storage_lib.spark.reading.native_read import ENABLED
from storage_lib.sql import Session
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

KEYS = 40
COLUMNS = {
    "tiny": "TINYINT",
    "whole": "INT",
    "big": "BIGINT",
    "price": "DECIMAL(10, 2)",
    "wide": "DECIMAL(30, 5)",
    "double": "DOUBLE",
    "text": "STRING",
    "day": "DATE",
    "moment": "TIMESTAMP(6)",
    "millis": "TIMESTAMP(3)",
}
VALUES: dict[str, Callable[[Random], Any]] = {
    "tiny": lambda rng: rng.randint(-128, 127),
    "whole": lambda rng: rng.randint(-(1 << 31), (1 << 31) - 1),
    "big": lambda rng: rng.choice([-(1 << 63), (1 << 63) - 1, 0, 7]),
    "price": lambda rng: Decimal(rng.randint(-99999999, 99999999)) / 100,
    "wide": lambda rng: Decimal(rng.randint(-(10**20), 10**20)) / 100_000,
    "double": lambda rng: rng.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25]),
    "text": lambda rng: rng.choice(["", "a", "a text of more than sixteen characters", "\U0010ffff" * 20]),
    "day": lambda rng: dt.date(rng.choice([1, 1582, 1970, 9999]), rng.randint(1, 12), 3),
    "moment": lambda rng: dt.datetime(rng.choice([1, 1970, 2024]), 1, 3, 4, 5, 6, rng.randint(0, 999_999)),  # noqa: DTZ001  no zone
    "millis": lambda rng: dt.datetime(2024, 1, 3, 4, 5, 6, 1000 * rng.randint(0, 999)),  # noqa: DTZ001  likewise
}
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ("k",), "bucket": 2},
    "partitioned": {"primary_key": ("p", "q", "k"), "partition_by": ("p", "q"), "bucket": 1},
    "vectors": {"primary_key": ("k",), "bucket": 1, "deletion_vectors__enabled": "true"},
    "appended": {"primary_key": (), "partition_by": ("p", "q"), "write_mode": "append-only", "bucket": -1},
    "counted": {"primary_key": (), "bucket": 1},
}
CONDITIONS: dict[str, set[str]] = {
    "": set(),
    "WHERE p = 'a'": {"p"},
    "WHERE p <> 'b' AND q >= 2": {"p", "q"},
    "WHERE upper(p) = 'C' OR q = 1": {"p", "q"},
    "WHERE upper(p) = 'C'": {"p"},
    "WHERE q IS NULL": {"q"},
    "WHERE k > 5": {"k"},
}
"""Conditions, and the columns that they use."""
GROUPS = ("", "p", "p, q", "q")


def query_of(rng: Random, names: list[str], partitions: list[str]) -> str:
    """Return a query of aggregates, most of which metadata answers if the files need no merge."""
    if rng.random() < 0.8:
        names = [name for name in names if name not in ("text", "double", "p")]
    columns = rng.sample(["count(*)", "count(k)", *(f"{of}({name})" for of in ("min", "max") for name in names)], 4)
    is_of_partitions = rng.random() < 0.8
    groups = [each for each in GROUPS if not is_of_partitions or set(each.split(", ")) <= {"", *partitions}]
    wheres = [each for each, used in CONDITIONS.items() if not is_of_partitions or used <= set(partitions)]
    group, where = rng.choice(groups), rng.choice(wheres)
    aliased = ", ".join(f"{each} AS c{place}" for place, each in enumerate(columns))
    having = "HAVING count(*) > 1" if rng.random() < 0.3 else ""
    if not group:
        return f"SELECT {aliased} FROM t {where} {having}"  # noqa: S608  our own text
    return f"SELECT {group}, {aliased} FROM t {where} GROUP BY {group} {having}"  # noqa: S608  likewise


def rows_of(table: pa.Table) -> list[str]:
    return sorted(str([plain(value) for value in row.values()]) for row in table.to_pylist())


def plain(value: object) -> object:
    return value + 0.0 if isinstance(value, float) else value  # zero has no sign


@contextmanager
def by_data_source(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(ENABLED, "false")
    try:
        yield
    finally:
        spark.conf.set(ENABLED, "true")


def is_answered(sql: Session, query: str) -> bool:
    plan = str(sql.execute(f"EXPLAIN {query}").to_arrow()["plan"][0])
    return "answered by the metadata" in plan


def of_duckdb(table: DynamicTable, query: str) -> list[str]:
    with duckdb.connect() as connection:
        connection.register("t", table.to_arrow())
        return rows_of(connection.sql(query).to_arrow_table())


def appended(rng: Random, table: DynamicTable) -> None:
    fields = [field.name for field in table.schema.fields if field.name in VALUES]
    rows = [
        {
            "k": key,
            "p": rng.choice(["a", "b", "c"]),
            "q": None if table.schema.field("q").type.nullable and rng.random() < 0.2 else rng.choice([1, 2, 3]),
            **{name: None if rng.random() < 0.2 else VALUES[name](rng) for name in fields},
        }
        for key in rng.sample(range(KEYS), rng.randint(1, 20))
    ]
    table.append(pa.Table.from_pylist(rows, schema=table.schema.arrow_schema))


def changed(rng: Random, table: DynamicTable, kind: str) -> DynamicTable:
    """Return the table after a random change."""
    what = rng.choice(["append"] * 3 + ["delete", "compact", "compact", "compact", "alter"])
    if what == "delete" and kind != "appended":
        low = rng.randrange(KEYS)
        table.delete(f"k between {low} and {low + 5}")
    elif what == "compact":
        table.compact(full=rng.random() < 0.7)
    elif what == "alter" and kind != "counted":
        return altered(rng, table)
    else:
        appended(rng, table)
    return table


def altered(rng: Random, table: DynamicTable) -> DynamicTable:
    names = [field.name for field in table.schema.fields]
    match rng.choice(["format", "widen", "rename", "add", "again"]):
        case "widen" if "tiny" in names and str(table.schema.field("tiny").type).startswith("TINYINT"):
            return table.alter(AlterType("tiny", "INT"))
        case "rename" if "big" in names:
            return table.alter(RenameColumn("big", "renamed"))
        case "add" if "added" not in names:
            return table.alter(AddColumn("added", "INT"))
        case "again":
            return table.alter(DropColumn("whole")).alter(AddColumn("whole", "INT"))
        case _:
            return table.alter(SetOption("file.format", rng.choice(["parquet", "parquet", "orc", "avro"])))


@pytest.mark.parametrize("seeds", thinned([range(3), range(3, 10)]), ids=str)
def test_random_aggregates_are_those_of_the_rows(
    spark: SparkSession, make_table: Callable[..., DynamicTable], seeds: range
) -> None:
    answered = 0
    for seed in seeds:
        rng = Random(seed)  # noqa: S311  reproducible
        kind = list(KINDS)[seed % len(KINDS)]
        optional = "" if "q" in KINDS[kind]["primary_key"] else "q"
        columns = {"k": "BIGINT NOT NULL", "p": "STRING NOT NULL", "q": f"INT{'' if optional else ' NOT NULL'}"}
        table = make_table(f"t{seed}", columns=columns | COLUMNS, **KINDS[kind])
        appended(rng, table)
        with Session(spark, open_catalog(table.address.warehouse), database="db") as sql:
            for step in range(4):
                table = changed(rng, table, kind)
                if rng.random() < 0.6:
                    table.compact()
                names = [field.name for field in table.schema.fields]
                query = query_of(rng, names, list(table.schema.partition_keys))
                where = f"seed {seed}, step {step}, {kind}: {query}"
                ours = query.replace("FROM t ", f"FROM t{seed} ")
                found = sql.execute(ours).to_arrow()
                with by_data_source(spark):
                    read = sql.execute(ours).to_arrow()
                assert found.schema == read.schema, where
                assert rows_of(found) == rows_of(read) == of_duckdb(table, query), where
                answered += is_answered(sql, ours)
    assert answered >= len(seeds) - 1, f"{answered}: some queries are answered by metadata"


@pytest.fixture
def sales(make_table: Callable[..., DynamicTable]) -> DynamicTable:
    """Return a compacted table with a key, in two partitions."""
    columns = {
        "day": "DATE NOT NULL",
        "id": "BIGINT NOT NULL",
        "item": "STRING",
        "price": "DECIMAL(10, 2)",
        "w": "DOUBLE",
    }
    table = make_table(
        "sales", columns=columns, primary_key=("day", "id"), partition_by=("day",), bucket=1, write_only="true"
    )
    rows = [(dt.date(2024, 5, 1 + key % 2), key, f"item {key}", Decimal(key), float(key)) for key in range(1, 7)]
    table.append([dict(zip(columns, row, strict=True)) for row in rows])
    return table


@pytest.fixture
def sql(spark: SparkSession, sales: DynamicTable) -> Iterator[Session]:
    with Session(spark, open_catalog(sales.address.warehouse), database="db") as session:
        yield session


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) AS n FROM sales", [{"n": 6}]),
        (
            "SELECT count(id) + 1 AS n, max(price) AS hi, min(day) AS lo FROM sales",
            [(7, Decimal(6), dt.date(2024, 5, 1))],
        ),
        ("SELECT count(*) AS n FROM sales WHERE day = '2024-05-01'", [{"n": 3}]),
        ("SELECT count(*) AS n, min(id) AS lo FROM sales WHERE day > '2024-06-01'", [{"n": 0, "lo": None}]),
        ("SELECT max(id) AS hi FROM sales GROUP BY day ORDER BY day", [{"hi": 6}, {"hi": 5}]),
        ("SELECT DISTINCT day(day) AS d FROM sales ORDER BY d", None),
        ("SELECT day(day) AS d FROM (SELECT DISTINCT day FROM sales) ORDER BY d", [{"d": 1}, {"d": 2}]),
        ("SELECT (SELECT count(*) FROM sales) * (SELECT max(id) FROM sales AS s) AS n", [{"n": 36}]),
        (
            "SELECT a.n + b.n AS n FROM (SELECT count(*) AS n FROM sales) a JOIN (SELECT max(id) AS n FROM sales) b",
            [{"n": 12}],
        ),
        ("SELECT count(*) AS n FROM sales WHERE day = (SELECT max(day) FROM sales)", [{"n": 3}]),
        ("SELECT count(*) AS n FROM sales VERSION AS OF 1", [{"n": 6}]),
        ("SELECT count(ID) AS n, max(Price) AS hi FROM sales", [(6, Decimal(6))]),
        ("SELECT max(ID) AS hi FROM sales WHERE DAY < '2024-05-02' GROUP BY Day", [{"hi": 6}]),
    ],
)
def test_metadata_answers_a_query_of_whole_partitions(sql: Session, query: str, expected: list[Any] | None) -> None:
    if expected is None:
        assert not is_answered(sql, query)
        return
    found = sql.execute(query).to_arrow().to_pylist()

    assert is_answered(sql, query)
    assert [tuple(row.values()) for row in found] == [
        tuple(each.values()) if isinstance(each, dict) else each for each in expected
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT min(item) FROM sales",
        "SELECT max(w) FROM sales",
        "SELECT count(item) FROM sales",
        "SELECT count(DISTINCT id) FROM sales",
        "SELECT count(*) FILTER (WHERE id > 2) FROM sales",
        "SELECT count(*) FROM sales WHERE id > 2",
        "SELECT count(*) FROM sales WHERE rand(7) > 0.5",
        "SELECT count(*) FROM sales TABLESAMPLE (50 PERCENT) REPEATABLE (7)",
        "SELECT sum(id) FROM sales",
        "SELECT max(id + 1) FROM sales",
        "SELECT max(id) FROM sales GROUP BY item",
        "SELECT max(id) FROM (SELECT id FROM sales LIMIT 2)",
        "SELECT count(*) FROM sales a JOIN sales b ON a.id = b.id",
        "SELECT item FROM sales WHERE id = (SELECT max(id) FROM sales)",
    ],
)
def test_metadata_does_not_answer_a_query_of_single_rows(spark: SparkSession, sql: Session, query: str) -> None:
    found = sql.execute(query).to_arrow()
    with by_data_source(spark):
        read = sql.execute(query).to_arrow()

    assert not is_answered(sql, query)
    # A sample depends on how the rows are divided among tasks.
    assert "TABLESAMPLE" in query or "rand" in query or rows_of(found) == rows_of(read)


def test_a_condition_leaves_files_out_whatever_the_case_of_its_columns(sql: Session) -> None:
    plan = str(sql.execute("EXPLAIN SELECT item FROM sales WHERE DAY = '2024-05-01'").to_arrow()["plan"][0])

    assert "snapshot 1: 1 files" in plan


def test_files_that_have_to_be_merged_are_read(sql: Session, sales: DynamicTable) -> None:
    sales.append([{"day": dt.date(2024, 5, 2), "id": 1, "item": "again", "price": Decimal(0), "w": 0.0}])
    query = "SELECT count(*) AS n, min(price) AS lo FROM sales"

    assert not is_answered(sql, query)
    assert sql.execute(query).to_arrow().to_pylist() == [{"n": 6, "lo": Decimal(0)}]

    sales.compact()

    assert is_answered(sql, query)
    assert sql.execute(query).to_arrow().to_pylist() == [{"n": 6, "lo": Decimal(0)}]


def test_each_query_counts_the_newest_snapshot_and_a_result_stays(sql: Session, sales: DynamicTable) -> None:
    query = "SELECT count(*) AS n, (SELECT max(id) FROM sales) AS hi FROM sales"
    before = sql.execute(query)

    sales.append([{"day": dt.date(2024, 5, 3), "id": 100, "item": "new", "price": None, "w": None}])

    assert sql.execute(query).to_arrow().to_pylist() == [{"n": 7, "hi": 100}]
    assert before.to_arrow().to_pylist() == [{"n": 6, "hi": 6}]
    assert sql.execute("SELECT count(*) AS n FROM sales VERSION AS OF 1").to_arrow().to_pylist() == [{"n": 6}]


def test_an_empty_table_has_no_rows_and_no_bounds(sql: Session) -> None:
    sql.execute("CREATE TABLE nothing (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    query = "SELECT count(*) AS n, max(id) AS hi FROM nothing"

    assert is_answered(sql, query)
    assert sql.execute(query).to_arrow().to_pylist() == [{"n": 0, "hi": None}]


def test_a_restart_of_a_stream_would_find_another_count_so_their_join_is_refused(
    spark: SparkSession, sql: Session, sales: DynamicTable, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    target = make_table("counts", columns={"value": "BIGINT NOT NULL", "n": "BIGINT"}, primary_key=("value",))
    counted = sql.execute("SELECT count(*) AS n FROM sales").dataframe
    assert counted is not None
    rates = spark.readStream.format("rate").load().select("value")

    with pytest.raises(InvalidInputError, match=r"db\.sales"):
        write_stream(rates.crossJoin(counted), target, checkpoint_location=str(tmp_path / "checkpoint"))
