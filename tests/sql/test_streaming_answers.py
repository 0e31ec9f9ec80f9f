"""After each run of a streaming INSERT its table holds the query's answer on the source, whatever Spark plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from local_kafka import LocalKafka
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.sql import Session
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark
KEYS = 200
BATCH = "/*+ OPTIONS('execution.runtime-mode' = 'batch') */"
SORT_MERGE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
PLANS = {
    "sort-merge": SORT_MERGE | {"spark.sql.adaptive.enabled": "false"},
    "adaptive": SORT_MERGE | {"spark.sql.adaptive.enabled": "true"},
    "shuffled hash": SORT_MERGE | {"spark.sql.join.preferSortMergeJoin": "false", "spark.sql.shuffle.partitions": "3"},
    "broadcast": {},
}


@contextmanager
def planned(spark: SparkSession, conf: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


class Streamed:
    """A source, a dimension and a sink in one warehouse."""

    def __init__(self, spark: SparkSession, directory: Path, options: dict[str, str]) -> None:
        from storage_lib.sql import Session

        self.spark = spark
        self.directory = directory
        self.catalog: Catalog = open_catalog(str(directory / "warehouse"), options)
        self.sql: Session = Session(spark, self.catalog)
        keyed = "id BIGINT, cat STRING, n INT, PRIMARY KEY (id) NOT ENFORCED"
        self.sql.execute(f"CREATE TABLE src ({keyed}) WITH ('bucket' = '2')")
        self.sql.execute("CREATE TABLE dim (cat STRING, label STRING, PRIMARY KEY (cat) NOT ENFORCED)")
        self.sql.execute("INSERT INTO dim VALUES ('a', 'first'), ('b', 'second')")
        self.sql.execute(f"SET 'execution.checkpointing.dir' = '{directory}/checkpoints'")

    @property
    def source(self) -> DynamicTable:
        return self.catalog.load_table("default.src")

    def sink(self, columns: str, options: str = "") -> None:
        self.sql.execute(f"CREATE TABLE sink ({columns}) {options}")

    def change(self, ids: range, cat: str | None, n: int, kind: str = "+U") -> None:
        count = len(ids)
        cats, numbers = pa.array([cat] * count, pa.string()), pa.array([n] * count, pa.int32())
        self.source.append(pa.table({"id": list(ids), "cat": cats, "n": numbers, "_row_kind": [kind] * count}))

    def insert(self, query: str, hint: str = "") -> str:
        """Stream the query to the source's end, with the dimension as a snapshot; return the message."""
        hinted = query.replace("src", f"src {hint}").replace("dim", f"dim {BATCH}")
        self.sql.execute("SET 'execution.runtime-mode' = 'streaming'")
        try:
            result = self.sql.execute("INSERT INTO sink /*+ OPTIONS('available-now' = 'true') */ " + hinted)
        finally:
            self.sql.execute("RESET 'execution.runtime-mode'")
        assert result.stream is not None
        result.stream.awaitTermination(240)
        return str(result.message)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        df = self.sql.execute(query).dataframe
        assert df is not None
        return sorted((tuple(row) for row in df.collect()), key=str)

    def check(self, query: str) -> None:
        assert self.rows("SELECT * FROM sink") == self.rows(query)


@pytest.fixture
def streamed(spark: SparkSession, tmp_path: Path) -> Iterator[Streamed]:
    """Tables without a log."""
    made = Streamed(spark, tmp_path, {})
    with made.sql:
        yield made


@pytest.fixture
def logged(spark: SparkSession, tmp_path: Path, kafka: LocalKafka) -> Iterator[Streamed]:
    """Tables with a log in Kafka."""
    made = Streamed(spark, tmp_path, {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})
    with made.sql:
        yield made
        made.sql.execute("DROP DATABASE default CASCADE")


LEFT_JOIN = "SELECT s.id, s.cat, s.n, d.label FROM src s LEFT JOIN dim d ON s.cat = d.cat"
INNER_JOIN = "SELECT s.id, s.cat, s.n, d.label FROM src s JOIN dim d ON s.cat = d.cat"
JOINED = "id BIGINT, cat STRING, n INT, label STRING"


def history(of: Streamed) -> Iterator[None]:
    """Change each row several times before each run of the stream; delete some rows last."""
    for cat, n in (("a", 1), ("b", 2), ("c", 3)):
        of.change(range(KEYS), cat, n)
    yield
    for other, n in (("c", 1), ("a", 2), (None, 3), ("b", 4)):
        of.change(range(KEYS), other, n)
    of.change(range(0, KEYS, 3), "b", 4, "-D")
    yield
    of.change(range(0, KEYS, 2), "a", 150)
    of.change(range(0, KEYS, 2), "c", 50)
    yield


@pytest.mark.parametrize("plan", thinned(PLANS, keep=lambda plan: plan == "adaptive"))
def test_a_join_keeps_the_changes_of_a_key_in_order(streamed: Streamed, plan: str) -> None:
    streamed.sink(f"{JOINED}, PRIMARY KEY (id) NOT ENFORCED", "WITH ('bucket' = '2')")

    with planned(streamed.spark, PLANS[plan]):
        for _ in history(streamed):
            message = streamed.insert(LEFT_JOIN)
            streamed.check(LEFT_JOIN)

    assert "put back into the source's order" in message


def test_a_query_among_the_columns_keeps_the_changes_of_a_key_in_order(streamed: Streamed) -> None:
    query = "SELECT s.id, s.cat, s.n, (SELECT max(label) FROM dim d WHERE d.cat = s.cat) FROM src s"
    streamed.sink(f"{JOINED}, PRIMARY KEY (id) NOT ENFORCED")

    with planned(streamed.spark, PLANS["sort-merge"]):
        for _ in history(streamed):
            message = streamed.insert(query)
            streamed.check(query)

    assert "put back into the source's order" in message


BY_ID = "PRIMARY KEY (id) NOT ENFORCED"
BY_BOTH = "PRIMARY KEY (id, cat) NOT ENFORCED"
QUERIES = {
    "a filter on a column that changes": (f"id BIGINT, n INT, {BY_ID}", "SELECT id, n FROM src WHERE n > 1"),
    "an inner join that loses its match": (f"{JOINED}, {BY_ID}", INNER_JOIN),
    "a table without a key": ("id BIGINT, cat STRING, n INT", "SELECT id, cat, n FROM src"),
    "a joined table without a key": (
        "cat STRING, label STRING",
        "SELECT s.cat, d.label FROM src s LEFT JOIN dim d ON s.cat = d.cat",
    ),
    "a key that changes": (
        f"id BIGINT, cat STRING, n INT, {BY_BOTH}",
        "SELECT id, coalesce(cat, '-'), n FROM src",
    ),
    "partitions that change": (
        f"id BIGINT, cat STRING, label STRING, {BY_BOTH}) PARTITIONED BY (cat",
        "SELECT s.id, coalesce(s.cat, '-'), d.label FROM src s LEFT JOIN dim d ON s.cat = d.cat",
    ),
    "another key": (
        "n INT, id BIGINT, PRIMARY KEY (n) NOT ENFORCED",
        "SELECT n + CAST(id AS INT) * 1000, id FROM src",
    ),
    "a lateral query": (
        "id BIGINT, label STRING",
        "SELECT s.id, x.label FROM src s, LATERAL (SELECT label FROM dim d WHERE d.cat = s.cat) x",
    ),
    "columns made into rows": (
        "id BIGINT, what STRING, v INT",
        "SELECT id, what, v FROM src UNPIVOT (v FOR what IN (n))",
    ),
    "a query in a condition": (
        f"id BIGINT, n INT, {BY_ID}",
        "SELECT id, n FROM src s WHERE cat IN (SELECT cat FROM dim)",
    ),
}


KEPT = ("a filter on a column that changes", "a joined table without a key", "a key that changes", "another key")
"""Cases of each kind of sink and of change; the random cases of `tests/differential` have the others as well."""


@pytest.mark.parametrize("case", thinned(QUERIES, keep=lambda case: case in KEPT))
def test_what_a_change_takes_away_is_taken_away(streamed: Streamed, case: str) -> None:
    columns, query = QUERIES[case]
    streamed.sink(columns)

    with planned(streamed.spark, PLANS["sort-merge"]):
        for _ in history(streamed):
            message = streamed.insert(query)
            streamed.check(query)

    assert "scan.normalize=lookup" in message


AGGREGATED = {
    "aggregation": (
        "cat STRING, total BIGINT, many BIGINT, PRIMARY KEY (cat) NOT ENFORCED",
        "WITH ('merge-engine' = 'aggregation', 'fields.default-aggregate-function' = 'sum')",
        "SELECT coalesce(cat, '-'), CAST(n AS BIGINT), CAST(1 AS BIGINT) FROM src",
        "SELECT coalesce(cat, '-'), sum(n), count(*) FROM src GROUP BY 1",
    ),
    "a sequence group of partial-update": (
        f"id BIGINT, at INT, total BIGINT, many BIGINT, {BY_ID}",
        (
            "WITH ('merge-engine' = 'partial-update', 'fields.at.sequence-group' = 'total,many', "
            "'fields.total.aggregate-function' = 'sum', 'fields.many.aggregate-function' = 'sum')"
        ),
        "SELECT id, 1, CAST(n AS BIGINT), CAST(1 AS BIGINT) FROM src",
        "SELECT id, 1, CAST(n AS BIGINT), CAST(1 AS BIGINT) FROM src",
    ),
}


@pytest.mark.parametrize("case", thinned(AGGREGATED))
def test_a_table_that_aggregates_counts_each_row_of_the_source_once(streamed: Streamed, case: str) -> None:
    columns, options, query, answer = AGGREGATED[case]
    streamed.sink(columns, options)

    for _ in history(streamed):
        message = streamed.insert(query)
        assert streamed.rows("SELECT * FROM sink WHERE many > 0") == streamed.rows(answer)

    assert "so the row before a change has to be taken out of it" in message


LOGGED = ("partitions that change", "an inner join that loses its match", "a joined table without a key")


@pytest.mark.parametrize("case", thinned(LOGGED))
def test_the_same_holds_with_a_log(logged: Streamed, case: str) -> None:
    columns, query = QUERIES[case]
    logged.sink(columns, "WITH ('bucket' = '2')" if "PRIMARY" in columns else "")

    with planned(logged.spark, PLANS["sort-merge"]):
        for _ in history(logged):
            logged.insert(query)
            logged.check(query)

    sink = logged.catalog.load_table("default.sink")
    assert told_by_log(sink) == sorted((tuple(row.values()) for row in sink.to_arrow().to_pylist()), key=str)


def told_by_log(table: DynamicTable) -> list[tuple[object, ...]]:
    """Return the rows that result from reading the whole log."""
    changes = table.stream(startup="from-timestamp", timestamp=0).poll()
    assert changes is not None
    rows: Counter[tuple[object, ...]] = Counter()
    of_key: dict[tuple[object, ...], tuple[object, ...]] = {}
    for change in changes.to_pylist():
        is_there = change.pop("_row_kind") in ("+I", "+U")
        row = tuple(change.values())
        if not table.schema.primary_keys:
            rows[row] += 1 if is_there else -1
            continue
        key = tuple(change[name] for name in table.schema.primary_keys)
        of_key.pop(key, None)
        if is_there:
            of_key[key] = row
    return sorted([*of_key.values(), *rows.elements()], key=str)


def test_a_repeated_micro_batch_of_another_key_finds_its_own_rows_and_goes_on(streamed: Streamed) -> None:
    streamed.sink(QUERIES["another key"][0])
    streamed.change(range(3), "a", 1)
    streamed.insert(QUERIES["another key"][1])
    commits = sorted((streamed.directory / "checkpoints" / "default.sink" / "commits").glob("[0-9]*"))

    # As if Spark had crashed between our commit and its own.
    commits[-1].unlink()
    streamed.change(range(1, 4), "a", 2)
    streamed.insert(QUERIES["another key"][1])

    streamed.check(QUERIES["another key"][1])


def test_two_rows_of_one_key_stop_the_stream_with_the_key(streamed: Streamed) -> None:
    query = "SELECT n, id FROM src"
    streamed.sink("n INT, id BIGINT, PRIMARY KEY (n) NOT ENFORCED")
    streamed.change(range(1), "a", 1)
    streamed.insert(query)
    streamed.change(range(1, 2), "a", 1)

    with pytest.raises(InvalidInputError, match=r"two rows of the query share the key \{'n': 1\}"):
        streamed.insert(query)

    assert streamed.rows("SELECT * FROM sink") == [(1, 0)]


def test_a_joined_table_stays_the_same_while_the_stream_lives(streamed: Streamed) -> None:
    streamed.sink(f"{JOINED}, {BY_ID}")
    streamed.change(range(4), "a", 1)
    streamed.insert(INNER_JOIN)
    streamed.sql.execute("DELETE FROM dim WHERE cat = 'a'")
    joined = streamed.catalog.load_table("default.dim")
    joined.maintenance.expire_snapshots(retain_last=1)
    assert joined.context.file_store.snapshots.earliest_id() == 2
    streamed.change(range(2), "b", 2)

    streamed.insert(INNER_JOIN)

    assert streamed.rows("SELECT * FROM sink") == [
        (0, "b", 2, "second"),
        (1, "b", 2, "second"),
        (2, "a", 1, "first"),
        (3, "a", 1, "first"),
    ]


def test_explain_says_what_a_streaming_insert_would_do(streamed: Streamed) -> None:
    streamed.sink(f"id BIGINT, n INT, {BY_ID}")
    streamed.sql.execute("SET 'execution.runtime-mode' = 'streaming'")

    rows = streamed.sql.execute("EXPLAIN INSERT INTO sink SELECT id, n FROM src WHERE n > 100").rows

    assert rows is not None
    said, plan = rows.column("plan").to_pylist()
    assert said == (
        "stream into default.sink: scan.normalize=lookup "
        "(WHERE (src.n > 100) may take in a row at one time and not at another)"
    )
    assert plan.startswith("== Physical Plan ==")
    assert "Filter" in plan


@pytest.mark.parametrize("mode", ["", "EXTENDED", "CODEGEN", "COST", "FORMATTED"])
def test_explain_shows_the_plan_of_a_stream(streamed: Streamed, mode: str) -> None:
    streamed.sql.execute("SET 'execution.runtime-mode' = 'streaming'")

    rows = streamed.sql.execute(f"EXPLAIN {mode} SELECT id FROM src WHERE n > 100").rows  # noqa: S608

    assert rows is not None
    [plan] = rows.column("plan").to_pylist()
    assert "dynamic_table" in plan
    assert "rror" not in plan


def test_an_explicit_none_is_refused_where_it_would_be_wrong(streamed: Streamed) -> None:
    streamed.sink(f"id BIGINT, n INT, {BY_ID}")

    with pytest.raises(InvalidInputError, match=r"which scan.normalize=none leaves out. Remove that option"):
        streamed.insert("SELECT id, n FROM src WHERE n > 1", "/*+ OPTIONS('scan.normalize' = 'none') */")


@pytest.mark.parametrize("number", ["rand()", "CAST(unix_timestamp() AS INT)"])
def test_what_is_another_value_later_is_refused_where_it_has_to_be_taken_away(streamed: Streamed, number: str) -> None:
    streamed.sink("id BIGINT, x DOUBLE")

    with pytest.raises(InvalidInputError, match="is different whenever it is computed"):
        streamed.insert("SELECT id, NUMBER FROM src".replace("NUMBER", number))
