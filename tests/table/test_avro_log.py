"""A table with an Avro log: its schemas are in a registry, from CREATE through ALTER to DROP."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import confluent_kafka as librdkafka
import fastavro
import pyarrow as pa
import pytest

from local_process import free_port
from storage_lib import (
    AddColumn,
    AlreadyExistsError,
    DropColumn,
    DynamicTable,
    InvalidInputError,
    StreamPosition,
    UnavailableError,
    ingest,
    open_catalog,
)
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.log_store.log_offsets import LogOffsets

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from local_registry import LocalRegistry
    from storage_lib import Catalog

COLUMNS = {"id": "BIGINT", "name": "STRING", "price": "DECIMAL(10, 2)"}
AVRO = {"log.format": "debezium-avro", "log.key.format": "avro", "bucket": "1"}


@pytest.fixture
def catalog(kafka: LocalKafka, registry: LocalRegistry, tmp_path: Path) -> Catalog:
    servers = {"log.kafka.bootstrap.servers": kafka.bootstrap_servers, "log.schema-registry.url": registry.url}
    return open_catalog(str(tmp_path), {**servers, "log.schema-registry.password": "sesame"})


@pytest.fixture
def client(registry: LocalRegistry) -> SchemaRegistry:
    return SchemaRegistry.of({"url": registry.url})


def made(catalog: Catalog, name: str, **options: str) -> DynamicTable:
    topic = f"{Path(catalog.warehouse).name}-{name}"
    return catalog.create_table(
        f"shop.{name}", COLUMNS, primary_key=["id"], options={**AVRO, "log.kafka.topic": topic, **options}
    )


def rows(table: DynamicTable, *changes: tuple[Any, ...]) -> pa.Table:
    schema = table.arrow_schema.append(pa.field("_row_kind", pa.string()))
    columns = [pa.array(values, each.type) for values, each in zip(zip(*changes, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def streamed(table: DynamicTable) -> list[dict[str, Any]]:
    source = table.stream(position=StreamPosition(snapshot_id=0, offsets=LogOffsets()))
    return [row for batch in iter(source.poll, None) for row in batch.to_pylist()]


def read_elsewhere(table: DynamicTable, registry: LocalRegistry) -> Iterator[tuple[Any, Any]]:
    """Yield keys and values as librdkafka and fastavro read them with the registry's schemas."""

    def decoded(content: bytes) -> Any:
        assert content[0] == 0
        with urlopen(f"{registry.url}/schemas/ids/{int.from_bytes(content[1:5], 'big')}") as answer:  # noqa: S310  ours
            written = json.loads(json.load(answer)["schema"])
        return fastavro.schemaless_reader(io.BytesIO(content[5:]), written, None)

    consumer = librdkafka.Consumer(
        {
            "bootstrap.servers": table.address.options["log.kafka.bootstrap.servers"],
            "group.id": table.uuid,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([librdkafka.TopicPartition(table.schema.options["log.kafka.topic"], 0, 0)])
    try:
        while (message := consumer.poll(20)) is not None and message.error() is None:
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            yield decoded(key), decoded(value)
    finally:
        consumer.close()


def test_others_read_the_log_by_the_registrys_schemas_over_an_alter(
    catalog: Catalog, registry: LocalRegistry, client: SchemaRegistry
) -> None:
    table = made(catalog, "orders")
    topic = table.schema.options["log.kafka.topic"]
    first = client.latest(f"{topic}-value")
    assert first is not None
    table.append(rows(table, (1, "a", 1, "+I"), (2, None, None, "+I")))

    altered = table.alter(AddColumn("note", "STRING"), DropColumn("name"))
    second = client.latest(f"{topic}-value")
    altered.append(rows(altered, (2, 5, "n", "+U"), (1, 1, None, "-D")))

    assert second not in (None, first)
    told = list(read_elsewhere(table, registry))
    assert [key["id"] for key, _ in told] == [1, 2, 2, 1]
    assert [
        (value["op"], value["before"] is None, (value["after"] or value["before"]).keys()) for _, value in told
    ] == [
        ("c", True, {"id", "name", "price"}),
        ("c", True, {"id", "name", "price"}),
        ("u", True, {"id", "price", "note"}),
        ("d", False, {"id", "price", "note"}),
    ]
    assert [(row["_row_kind"], row["id"], str(row["price"]), row["note"]) for row in streamed(altered)] == [
        ("+I", 1, "1.00", None),
        ("+I", 2, "None", None),
        ("+U", 2, "5.00", "n"),
        ("-D", 1, "1.00", None),
    ]

    copy = catalog.create_table("shop.copy", {"id": "BIGINT", "note": "STRING"}, primary_key=["id"], options={})
    ingest(copy, topic, options=catalog.options, format="debezium-avro")
    assert copy.to_arrow().to_pylist() == [{"id": 2, "note": "n"}]

    catalog.drop_table("shop.orders")
    assert client.latest(f"{topic}-value") is client.latest(f"{topic}-key") is None


def test_secrets_and_the_registrys_place_are_the_connections(catalog: Catalog) -> None:
    table = made(catalog, "secret")

    assert not [key for key in table.schema.options if key.startswith("log.schema-registry.")]
    for shown in (str(table.address), repr(table.options), str(table.describe()), repr(table.log)):
        assert "sesame" not in shown
    assert table.describe()["log.format"] == "debezium-avro"
    with pytest.raises(InvalidInputError, match="is a secret"):
        made(catalog, "leaky", **{"log.schema-registry.password": "sesame"})


def test_without_its_registry_nothing_is_made_or_written(
    catalog: Catalog, client: SchemaRegistry, tmp_path: Path
) -> None:
    down = open_catalog(
        str(tmp_path), {**catalog.options, "log.schema-registry.url": f"http://127.0.0.1:{free_port()}"}
    )
    with pytest.raises(UnavailableError, match="nothing was written"):
        made(down, "orders")
    assert not catalog.table_exists("shop.orders")

    table = made(catalog, "orders")
    with pytest.raises(UnavailableError, match=r"Check log.schema-registry.url"):
        down.load_table("shop.orders").append(rows(table, (1, "a", 1, "+I")))
    with pytest.raises(UnavailableError, match="nothing was written"):
        down.load_table("shop.orders").alter(AddColumn("note", "STRING"))
    assert table.refresh() is table
    assert table.context.leases.holder() is None
    assert table.append(rows(table, (1, "a", 1, "+I"))) is not None
    assert len(streamed(table)) == 1

    other = table.schema.options["log.kafka.topic"]
    client.register(f"{other}x-value", '{"type":"record","name":"Theirs","fields":[{"name":"a","type":"int"}]}')
    with pytest.raises(AlreadyExistsError, match="that is not this table's; choose another topic"):
        made(catalog, "ordersx")
    assert client.latest(f"{other}x-value") is not None


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"log.key.format": "avro"}, "needs log.format=debezium-avro"),
        ({"log.format": "debezium-avro"}, "needs a schema registry: give the URL"),
    ],
)
def test_what_can_not_be_is_refused_at_create(tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    nowhere = open_catalog(str(tmp_path), {"log.kafka.bootstrap.servers": "127.0.0.1:1"})

    with pytest.raises(InvalidInputError, match=complaint):
        nowhere.create_table("shop.t", COLUMNS, primary_key=["id"], options=options)
    assert not nowhere.table_exists("shop.t")
