"""A streaming INSERT keeps its table equal to a query that Spark can't stream over changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError, SnapshotExpiredError
from tests.support.changing_sources import QUERIES, ChangingSources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.sql import Session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COLUMNS = {
    "filtered": None,
    "joined": "id INT, name STRING, amount BIGINT",
    "grouped": "name STRING, n BIGINT, total BIGINT, most BIGINT",
    "distinct_kinds": "kind STRING",
    "counted": "kind STRING, n BIGINT",
    "without": "id INT",
    "pairs": "one INT, other INT",
}
"""Columns of the sinks; a query without is one that Spark streams."""

STOPS = ("roll_back", "expire", "recreate")
"""Steps after which a stream has to be started anew."""


class Streams:
    """A SQL session in streaming mode for INSERTs, and in batch mode for queries."""

    def __init__(self, sql: Session, directory: Path) -> None:
        self.sql = sql
        sql.execute("USE shop")
        sql.execute(f"SET 'execution.checkpointing.dir' = '{directory}/checkpoints'")

    def insert(self, sink: str, query: str, partition: str = "") -> str:
        """Stream to the end of the sources; return the message."""
        self.sql.execute("SET 'execution.runtime-mode' = 'streaming'")
        try:
            hint = "/*+ OPTIONS('available-now' = 'true') */"
            result = self.sql.execute(f"INSERT INTO {sink} {hint} {partition} {query}")
        finally:
            self.sql.execute("RESET 'execution.runtime-mode'")
        assert result.stream is not None
        result.stream.awaitTermination(240)
        return str(result.message)

    def bag(self, query: str) -> Counter[tuple[object, ...]]:
        df = self.sql.execute(query).dataframe
        assert df is not None
        return Counter(tuple(row) for row in df.collect())

    def check(self, sink: str, query: str) -> None:
        assert self.bag(f"FROM {sink}") == self.bag(query)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return open_catalog(str(tmp_path / "warehouse"))


@pytest.fixture
def streams(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> Iterator[Streams]:
    from storage_lib.sql import Session

    catalog.create_database("shop", if_not_exists=True)
    with Session(spark, catalog) as sql:
        yield Streams(sql, tmp_path)


@pytest.mark.parametrize("seed", [1])
def test_after_each_run_over_a_random_history_the_sink_holds_the_answer(
    streams: Streams, catalog: Catalog, seed: int
) -> None:
    sources = ChangingSources(catalog, seed)
    sinks = {name: columns for name, columns in COLUMNS.items() if columns is not None}
    for name, columns in sinks.items():
        streams.sql.execute(f"CREATE TABLE {name}_sink ({columns})")
    history: list[str] = []
    for _ in range(3):
        history += [sources.step(without=STOPS) for _ in range(sources.random.randrange(1, 5))]
        for name in sinks:
            if sources.random.random() < 0.7:
                streams.insert(f"{name}_sink", QUERIES[name])
                streams.check(f"{name}_sink", QUERIES[name])


COUNTED = "SELECT cat, count(*) AS n, sum(amount) AS total FROM orders GROUP BY cat"
SINK = "CREATE TABLE sink (cat INT, n BIGINT, total BIGINT, PRIMARY KEY (cat) NOT ENFORCED)"


@pytest.fixture
def orders(streams: Streams) -> Callable[[str], None]:
    """Create ``orders`` with two rows, and return a function that runs a statement."""
    streams.sql.execute("CREATE TABLE orders (id INT, cat INT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    streams.sql.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")

    def run(statement: str) -> None:
        streams.sql.execute(statement)

    return run


def test_a_keyed_sink_hears_only_rows_that_changed(
    streams: Streams, catalog: Catalog, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    message = streams.insert("sink", COUNTED)
    assert "each micro-batch applies what commits of shop.orders changed in the query's result" in message

    orders("INSERT INTO orders VALUES (3, 1, 5)")
    orders("DELETE FROM orders WHERE id = 2")
    streams.insert("sink", COUNTED)

    assert streams.bag("SELECT * FROM sink") == Counter({(1, 2, 15): 1})
    changes = catalog.load_table("shop.sink").changes(start_snapshot_id=1, end_snapshot_id=2).read_all()
    assert sorted(changes.column("cat").to_pylist()) == [1, 2]


def test_a_run_without_new_commits_commits_nothing(
    streams: Streams, catalog: Catalog, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    streams.insert("sink", COUNTED)
    assert catalog.load_table("shop.sink").inspect.latest_snapshot_id() == 1


def test_a_commit_that_leaves_the_answer_alone_moves_only_the_position(
    streams: Streams, catalog: Catalog, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    orders("INSERT INTO orders VALUES (1, 1, 10)")
    orders("UPDATE orders SET amount = amount WHERE id = 2")
    streams.insert("sink", COUNTED)
    newest = catalog.load_table("shop.sink").inspect.latest_snapshot()
    assert newest is not None
    assert newest.delta_record_count == 0


def test_a_micro_batch_that_was_committed_before_a_crash_is_not_written_again(
    streams: Streams, tmp_path: Path, orders: Callable[[str], None]
) -> None:
    orders("CREATE TABLE sink (cat INT, n BIGINT, total BIGINT)")
    streams.insert("sink", COUNTED)
    orders("INSERT INTO orders VALUES (3, 1, 5)")
    streams.insert("sink", COUNTED)
    commits = tmp_path / "checkpoints" / "shop.sink" / "commits"
    for left in (commits / "1", commits / ".1.crc"):
        left.unlink(missing_ok=True)

    streams.insert("sink", COUNTED)

    streams.check("sink", COUNTED)
    orders("INSERT INTO orders VALUES (4, 2, 5)")
    streams.insert("sink", COUNTED)
    streams.check("sink", COUNTED)


def test_an_overwrite_without_change_tracking_is_found_by_comparing_both_answers(
    streams: Streams, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    orders("INSERT OVERWRITE orders /*+ OPTIONS('change-tracking' = 'false') */ VALUES (7, 7, 70), (2, 2, 20)")
    streams.insert("sink", COUNTED)
    assert streams.bag("SELECT * FROM sink") == Counter({(7, 1, 70): 1, (2, 1, 20): 1})


def test_a_sink_that_was_rolled_back_stops_the_stream(
    streams: Streams, catalog: Catalog, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    orders("INSERT INTO orders VALUES (3, 1, 5)")
    streams.insert("sink", COUNTED)
    catalog.load_table("shop.sink").rollback_to(snapshot_id=1)
    orders("INSERT INTO orders VALUES (4, 1, 5)")
    with pytest.raises(InvalidInputError, match="it was rolled back"):
        streams.insert("sink", COUNTED)


def test_a_source_that_was_created_again_stops_the_stream(streams: Streams, orders: Callable[[str], None]) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    orders("DROP TABLE orders")
    orders("CREATE TABLE orders (id INT, cat INT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    orders("INSERT INTO orders VALUES (1, 1, 10)")
    with pytest.raises(InvalidInputError, match="was dropped and created again while a stream was reading it"):
        streams.insert("sink", COUNTED)


def test_the_snapshots_of_the_next_micro_batch_do_not_expire(
    streams: Streams, catalog: Catalog, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    source = catalog.load_table("shop.orders")
    for number in range(3, 8):
        source.upsert([{"id": number, "cat": 1, "amount": 5}])
    source.maintenance.expire_snapshots(retain_last=1)
    streams.insert("sink", COUNTED)
    streams.check("sink", COUNTED)

    (consumer,) = (each.name for each in source.consumers.list() if each.name.startswith("stream-"))
    source.consumers.delete(consumer)
    for number in range(8, 12):
        source.upsert([{"id": number, "cat": 1, "amount": 5}])
    source.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotExpiredError, match="start it with a new checkpoint, into an empty table"):
        streams.insert("sink", COUNTED)


def test_two_rows_with_one_key_stop_the_stream_and_name_the_key(
    streams: Streams, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    orders("INSERT INTO orders VALUES (3, 1, 99)")
    with pytest.raises(InvalidInputError, match="cat"):
        streams.insert("sink", "SELECT cat, count(*), amount FROM orders GROUP BY cat, amount")
    assert not streams.bag("SELECT * FROM sink")


def test_an_append_only_sink_refuses_the_first_row_that_leaves_the_answer(
    streams: Streams, orders: Callable[[str], None]
) -> None:
    orders("CREATE TABLE sink (cat INT, n BIGINT, total BIGINT) WITH ('write-mode' = 'append-only')")
    streams.insert("sink", COUNTED)
    orders("INSERT INTO orders VALUES (3, 3, 5)")
    streams.insert("sink", COUNTED)
    streams.check("sink", COUNTED)
    orders("INSERT INTO orders VALUES (4, 3, 5)")
    with pytest.raises(InvalidInputError, match="append-only"):
        streams.insert("sink", COUNTED)


def test_queries_form_a_chain_and_retractions_flow_through_it(streams: Streams, orders: Callable[[str], None]) -> None:
    of_counts = "SELECT n, count(*) AS cats FROM counts GROUP BY n"
    orders("CREATE TABLE counts (cat INT, n BIGINT, PRIMARY KEY (cat) NOT ENFORCED)")
    orders("CREATE TABLE of_counts (n BIGINT, cats BIGINT, PRIMARY KEY (n) NOT ENFORCED)")
    for statement in (
        "INSERT INTO orders VALUES (3, 1, 5)",
        "DELETE FROM orders WHERE cat = 2",
        "INSERT INTO orders VALUES (4, 1, 5), (5, 2, 1), (6, 3, 1)",
        "UPDATE orders SET cat = 3 WHERE id = 1",
    ):
        orders(statement)
        streams.insert("counts", "SELECT cat, count(*) AS n FROM orders GROUP BY cat")
        streams.insert("of_counts", of_counts)
        streams.check("of_counts", of_counts)


def test_constant_partitions_and_casts_of_the_target_apply(streams: Streams, orders: Callable[[str], None]) -> None:
    orders("CREATE TABLE sink (cat STRING, n INT, dt STRING) PARTITIONED BY (dt)")
    query = "SELECT cat, count(*) FROM orders GROUP BY cat"
    streams.insert("sink", query, partition="PARTITION (dt = '2024-05-14')")
    orders("DELETE FROM orders WHERE id = 1")
    streams.insert("sink", query, partition="PARTITION (dt = '2024-05-14')")
    assert streams.bag("SELECT * FROM sink") == Counter({("2", 1, "2024-05-14"): 1})


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT cat, count(*), 1 FROM orders WHERE rand() < 2 GROUP BY cat", "CREATE MATERIALIZED TABLE"),
        ("SELECT cat, count(*), 1 FROM orders GROUP BY cat ORDER BY 2 LIMIT 1", "CREATE MATERIALIZED TABLE"),
        ("SELECT cat, 1, avg(CAST(amount AS DOUBLE)) FROM orders GROUP BY cat", "cast to DECIMAL"),
        ("SELECT cat, count(*), 1 FROM orders VERSION AS OF 1 JOIN orders USING (cat) GROUP BY cat", "leave the hint"),
        ("SELECT a.cat, 1, 1 FROM sink a JOIN orders b ON a.cat = b.cat", "can't read itself"),
    ],
)
def test_a_query_that_can_not_be_kept_up_to_date_is_refused_before_anything_starts(
    streams: Streams, tmp_path: Path, orders: Callable[[str], None], query: str, reason: str
) -> None:
    orders(SINK)
    with pytest.raises(InvalidInputError, match=reason):
        streams.insert("sink", query)
    assert not (tmp_path / "checkpoints").exists()


def test_a_checkpoint_belongs_to_one_query(streams: Streams, orders: Callable[[str], None]) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    with pytest.raises(InvalidInputError, match="is of another stream or of one with another query"):
        streams.insert("sink", COUNTED.replace("count(*)", "max(amount)"))


def test_a_checkpoint_of_a_stream_of_rows_is_not_taken_for_one_of_commits_or_the_other_way_round(
    streams: Streams, orders: Callable[[str], None]
) -> None:
    rows = "SELECT id, 1, amount FROM orders"
    orders(SINK)
    streams.insert("sink", rows)
    with pytest.raises(InvalidInputError, match="is of another stream"):
        streams.insert("sink", COUNTED)

    orders("DROP TABLE sink")
    orders(SINK)
    streams.sql.execute("SET 'pipeline.name' = 'other'")
    streams.insert("sink", COUNTED)
    with pytest.raises(InvalidInputError, match="kept up to date from commits"):
        streams.insert("sink", rows)


def test_explain_shows_how_each_operator_is_maintained(streams: Streams, orders: Callable[[str], None]) -> None:
    orders(SINK)
    streams.sql.execute("SET 'execution.runtime-mode' = 'streaming'")
    (row,) = streams.sql.execute(f"EXPLAIN INSERT INTO sink {COUNTED}").to_arrow().to_pylist()
    assert "each micro-batch applies what commits of shop.orders changed" in row["plan"]
    assert "recomputed: aggregate" in row["plan"]
