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
from storage_lib.spark.insert_stream import commit_source
from storage_lib.table.protocol.table_address import TableAddress
from tests.support.changing_sources import QUERIES, ChangingSources
from tests.support.deep_tests import thinned

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
"""Steps after which a stream stops and needs a new checkpoint."""


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


SINKS = {name: columns for name, columns in COLUMNS.items() if columns is not None}
FEW = ("joined", "grouped")


@pytest.mark.parametrize(
    ("names", "rounds"),
    thinned([pytest.param(FEW, 2), pytest.param(FEW, 3), pytest.param(tuple(SINKS), 3)]),
    ids=["a few sinks", "more rounds", "all sinks"],
)
def test_after_each_run_over_a_random_history_the_sink_holds_the_answer(
    streams: Streams, catalog: Catalog, names: tuple[str, ...], rounds: int
) -> None:
    sources = ChangingSources(catalog, 1)
    sinks = {name: SINKS[name] for name in names}
    for name, columns in sinks.items():
        streams.sql.execute(f"CREATE TABLE {name}_sink ({columns})")
    history: list[str] = []
    for _ in range(rounds):
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


def test_a_stream_keeps_the_first_rows_of_an_order(streams: Streams, orders: Callable[[str], None]) -> None:
    orders("CREATE TABLE best (id INT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    query = "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2"
    for statement in ("INSERT INTO orders VALUES (3, 1, 15), (4, 2, 5)", "DELETE FROM orders WHERE id = 2"):
        orders(statement)
        streams.insert("best", query)
        streams.check("best", query)

    assert streams.bag("SELECT * FROM best") == Counter({(3, 15): 1, (1, 10): 1})


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


@pytest.mark.parametrize("steps", thinned([2, 4]))
def test_queries_form_a_chain_and_retractions_flow_through_it(
    streams: Streams, orders: Callable[[str], None], steps: int
) -> None:
    of_counts = "SELECT n, count(*) AS cats FROM counts GROUP BY n"
    orders("CREATE TABLE counts (cat INT, n BIGINT, PRIMARY KEY (cat) NOT ENFORCED)")
    orders("CREATE TABLE of_counts (n BIGINT, cats BIGINT, PRIMARY KEY (n) NOT ENFORCED)")
    for statement in (
        "INSERT INTO orders VALUES (3, 1, 5)",
        "DELETE FROM orders WHERE cat = 2",
        "INSERT INTO orders VALUES (4, 1, 5), (5, 2, 1), (6, 3, 1)",
        "UPDATE orders SET cat = 3 WHERE id = 1",
    )[:steps]:
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
        ("SELECT cat, count(*), 1 FROM orders GROUP BY cat ORDER BY 2 LIMIT 1 OFFSET 1", "CREATE MATERIALIZED TABLE"),
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


def test_a_stream_that_starts_before_the_first_row_removes_the_answer_over_no_rows(streams: Streams) -> None:
    streams.sql.execute("CREATE TABLE orders (id INT, cat INT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    streams.sql.execute("CREATE TABLE sink (n BIGINT)")
    counted = "SELECT count(*) FROM orders"
    streams.insert("sink", counted)
    assert streams.bag("FROM sink") == Counter({(0,): 1})

    streams.sql.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    streams.insert("sink", counted)
    assert streams.bag("FROM sink") == Counter({(2,): 1})


def test_settings_of_the_session_that_change_later_do_not_change_old_rows(
    streams: Streams, spark: SparkSession, orders: Callable[[str], None]
) -> None:
    orders("CREATE TABLE events (id INT, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED)")
    orders("INSERT INTO events VALUES (1, timestamp_millis(0)), (2, timestamp_millis(1))")
    orders("CREATE TABLE hours (h INT, n BIGINT)")
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    by_hour = "SELECT hour(at), count(*) FROM events GROUP BY hour(at)"
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        streams.insert("hours", by_hour)
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        orders("INSERT INTO events VALUES (3, timestamp_millis(2))")
        streams.insert("hours", by_hour)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert streams.bag("FROM hours") == Counter({(0, 3): 1})


def test_an_altered_column_stops_the_stream_and_another_one_does_not(
    streams: Streams, orders: Callable[[str], None]
) -> None:
    orders("CREATE TABLE sink (cat INT, n BIGINT)")
    query = "SELECT cat, count(*) FROM orders GROUP BY cat"
    streams.insert("sink", query)
    orders("ALTER TABLE orders ADD COLUMN more INT")
    orders("INSERT INTO orders (id, cat) VALUES (3, 1)")
    streams.insert("sink", query)
    streams.check("sink", query)

    orders("ALTER TABLE orders DROP COLUMN cat")
    orders("ALTER TABLE orders ADD COLUMN cat INT")
    with pytest.raises(InvalidInputError, match=r"columns of shop\.orders that a stream reads have changed"):
        streams.insert("sink", query)


def test_a_negative_zero_is_removed_as_it_was_written(streams: Streams) -> None:
    streams.sql.execute("CREATE TABLE t (id INT, v DOUBLE, PRIMARY KEY (id) NOT ENFORCED)")
    streams.sql.execute("CREATE TABLE sink (id INT, v DOUBLE, n BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    streams.sql.execute("INSERT INTO t VALUES (1, -0.0D), (2, -0.0D)")
    query = "SELECT id, v, count(*) FROM t GROUP BY id, v"
    for change in ("INSERT INTO t VALUES (1, 5.0D)", "DELETE FROM t WHERE id = 2"):
        streams.insert("sink", query)
        streams.sql.execute(change)
    streams.insert("sink", query)
    assert streams.bag("FROM sink") == Counter({(1, 5.0, 1): 1})


def test_a_committed_micro_batch_is_known_after_its_snapshot_has_expired(
    streams: Streams, catalog: Catalog, tmp_path: Path, orders: Callable[[str], None]
) -> None:
    orders(SINK)
    streams.insert("sink", COUNTED)
    orders("INSERT INTO orders VALUES (3, 1, 5)")
    streams.insert("sink", COUNTED)
    sink = catalog.load_table("shop.sink")
    sink.compact()
    sink.maintenance.expire_snapshots(retain_last=1)
    commits = tmp_path / "checkpoints" / "shop.sink" / "commits"
    for left in (commits / "1", commits / ".1.crc"):
        left.unlink(missing_ok=True)

    streams.insert("sink", COUNTED)

    streams.check("sink", COUNTED)


def test_a_run_to_the_end_waits_where_no_snapshots_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """An end at the beginning of all tables would remove every row."""
    start = {"shop.orders": {"table": "x@main", "snapshot": 7, "mark": "m"}}
    monkeypatch.setattr(commit_source, "table_at", lambda _: None)
    monkeypatch.setattr(commit_source, "consistent_snapshots", lambda *_: None)
    reader = commit_source.CommitReader(TableAddress(warehouse="w", name="shop.orders"), ["shop.orders"])
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start


def test_explain_shows_how_each_operator_is_maintained(streams: Streams, orders: Callable[[str], None]) -> None:
    orders(SINK)
    streams.sql.execute("SET 'execution.runtime-mode' = 'streaming'")
    (row,) = streams.sql.execute(f"EXPLAIN INSERT INTO sink {COUNTED}").to_arrow().to_pylist()
    assert "each micro-batch applies what commits of shop.orders changed" in row["plan"]
    assert "recomputed: aggregate" in row["plan"]
