"""The pages show which topics are read into a table, how far it is behind them, and what was rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from dynamic_table.pages.catalog_board import CatalogBoard
from dynamic_table.pages.outside_states import source_states
from storage_lib import UnavailableError, ingest, open_catalog
from tests.support.shared_server import unique_name

if TYPE_CHECKING:
    from local_kafka import LocalKafka

ORDERS = {"id": "BIGINT NOT NULL", "item": "VARCHAR(3)"}


def created(servers: str, tmp_path: Path) -> str:
    topic = f"{unique_name(tmp_path)}.orders"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    return topic


def send(servers: str, topic: str, *rows: dict[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for row in rows:
        producer.produce(topic, json.dumps({"before": None, "after": row, "op": "c"}))
    assert producer.flush(60) == 0


def test_the_list_and_the_page_of_a_table_show_its_topics(kafka: LocalKafka, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    topic = created(servers, tmp_path)
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.kafka.bootstrap.servers": servers})
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"], options={"log.system": "none"})
    catalog.create_table("shop.other", ORDERS, primary_key=["id"], options={"log.system": "none"})
    send(servers, topic, {"id": 1, "item": "tea"}, {"id": 2, "item": "teapot"})
    ingest(table, topic, options={**catalog.options, "source.on-reject": "quarantine"})
    send(servers, topic, {"id": 3, "item": "cup"})
    board = CatalogBoard(catalog)

    # A server is asked in the background, and the next request has its answer.
    while not (orders := board.rows()[0]).get("sources"):
        pass

    assert orders["sources"] == [{"source": topic, "lag": 1, "error": None}]
    assert orders["rejected_count"] == 1
    assert board.view("shop.orders")["sources"] == orders["sources"]
    assert board.rows()[1].get("sources", []) == []


def test_a_source_with_another_name_than_its_topic_has_no_lag(kafka: LocalKafka, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    topic = created(servers, tmp_path)
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.kafka.bootstrap.servers": servers})
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"], options={"log.system": "none"})
    send(servers, topic, {"id": 1, "item": "tea"})
    ingest(table, topic, options=catalog.options, source="by-another-name")

    assert source_states(table, ()) == [{"source": "by-another-name", "lag": None, "error": None}]


def test_a_broker_that_does_not_answer_is_shown_without_secrets(
    kafka: LocalKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = kafka.bootstrap_servers
    topic = created(servers, tmp_path)
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.kafka.bootstrap.servers": servers})
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"], options={"log.system": "none"})
    send(servers, topic, {"id": 1, "item": "tea"})
    ingest(table, topic, options=catalog.options)

    def unreachable(*_: object) -> int:
        raise UnavailableError("no answer to user secret-name")

    monkeypatch.setattr("storage_lib.table.sources.source_lag.source_lag", unreachable)

    [state] = source_states(table, ("secret-name",))
    assert (state["source"], state["lag"]) == (topic, None)
    assert state["error"].startswith("UnavailableError: no answer")
    assert "secret-name" not in state["error"]
