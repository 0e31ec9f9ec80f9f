"""Rescaling a table over a real broker: its log restarts in a topic with as many partitions as buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage_lib import Catalog, CommitConflictError, InvalidInputError, open_catalog
from tests.support.orders_table import content, orders, rows
from tests.support.spark_topics import committed_values, topics_of_broker
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from pathlib import Path

    from local_kafka import LocalKafka

pytestmark = [pytest.mark.kafka, pytest.mark.integration]


@pytest.fixture
def catalog(kafka: LocalKafka, tmp_path: Path) -> Catalog:
    return open_catalog(tmp_path / "warehouse", {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})


def test_the_log_follows_into_a_topic_of_its_own_and_a_drop_takes_both_away(
    kafka: LocalKafka, catalog: Catalog
) -> None:
    topic = "rewritten_over_kafka"
    table = orders(catalog, **{"bucket": "2", "log.kafka.topic": topic})
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 3 30"))
    source = table.stream()
    source.poll()

    rewritten = table.rewrite(options={"bucket": "3"})
    rewritten.append(rows("+U a 1 11", "-D b 3 30"))

    topics = topics_of_broker(kafka.bootstrap_servers)
    assert (topics[topic], topics[f"{topic}-v2"]) == (2, 3)
    assert sorted(change["op"] for change in committed_values(rewritten)) == ["d", "u"]
    assert content(catalog.load_table(table.name)) == {"a 1 11", "a 2 20"}
    with pytest.raises(CommitConflictError, match=f"its log is topic '{topic}-v2' now"):
        table.append(rows("+I a 9 90"))
    with pytest.raises(InvalidInputError, match=f"its log is topic '{topic}-v2' now"):
        rewritten.stream(position=source.position).poll()
    fresh = rewritten.stream()
    first = fresh.poll()
    rewritten.append(rows("+I a 4 40"))
    then = fresh.poll()
    assert first is not None
    assert then is not None
    assert (sorted(first["id"].to_pylist()), then["id"].to_pylist()) == ([1, 2], [4])

    catalog.drop_table(table.name)
    assert [each for each in topics_of_broker(kafka.bootstrap_servers) if each.startswith(topic)] == []


def test_a_counted_table_gets_a_key_and_its_log_one_too(kafka: LocalKafka, catalog: Catalog) -> None:
    topic = "keyed_over_kafka"
    table = catalog.create_table("shop.visits", "id BIGINT, page STRING", options={"log.kafka.topic": topic})
    table.append(whole_rows(table, {"id": [1, 2]}))

    keyed = table.rewrite(primary_key=["id"])
    keyed.append(whole_rows(keyed, {"id": [1]}))

    assert topics_of_broker(kafka.bootstrap_servers)[f"{topic}-v2"] == 1
    assert [change["after"] for change in committed_values(keyed)] == [{"id": 1, "page": None}]
    assert sorted(keyed.to_arrow()["id"].to_pylist()) == [1, 2]
    catalog.drop_table(table.name)
