"""Tables shared with Hive clients, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from local_metastore import LocalMetastore
from storage_lib import (
    AddColumn,
    AlreadyExistsError,
    AlterType,
    DropColumn,
    InvalidInputError,
    UnavailableError,
    open_catalog,
)
from storage_lib.catalog.hive.hive_entries import HiveEntries
from storage_lib.catalog.hive.hive_table import schema_id_of
from storage_lib.catalog.table_name import TableName
from storage_lib.hive.hive_types import hive_type
from storage_lib.schema.evolution.schema_changes import type_of
from tests.support.catalog_homes import CatalogHome, catalog_home


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, metastore: LocalMetastore) -> CatalogHome:
    return catalog_home("hive", request, tmp_path)


@pytest.fixture
def client(metastore: LocalMetastore) -> Iterator[Any]:
    """Connect an independent Hive client."""
    place = urlsplit(metastore.uri)
    transport = TBufferedTransport(TSocket(place.hostname, place.port))
    transport.open()
    yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    transport.close()


def test_a_hive_client_sees_name_columns_partition_keys_location_and_properties(home: CatalogHome, client: Any) -> None:
    columns = {"id": "BIGINT NOT NULL", "price": "DECIMAL(9, 2)", "tags": "ARRAY<STRING>", "day": "DATE NOT NULL"}
    catalog = home.open({"log.kafka.sasl.plain.password": "hush"})
    table = catalog.create_table(
        f"{home.database}.orders",
        columns,
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"bucket": "3"},
        comment="what was bought",
    )

    seen = client.get_table(home.database, "orders")

    assert client.get_all_tables(home.database) == ["orders"]
    assert [(each.name, each.type) for each in seen.sd.cols] == [
        ("id", "bigint"),
        ("price", "decimal(9,2)"),
        ("tags", "array<string>"),
    ]
    assert [(each.name, each.type) for each in seen.partitionKeys] == [("day", "date")]
    assert urlsplit(seen.sd.location).path == table.location
    assert seen.tableType == "EXTERNAL_TABLE"
    told = seen.parameters
    assert (told["table_type"], told["bucket"], told["primary-key"]) == ("PAIMON", "3", "id,day")
    assert (told["comment"], told["dynamic-table.uuid"]) == ("what was bought", table.uuid)
    assert "hush" not in str(seen)


def test_a_hive_client_sees_an_altered_table_as_it_is(home: CatalogHome, client: Any) -> None:
    table = home.open().create_table(
        f"{home.database}.orders", {"id": "INT", "item": "STRING", "price": "INT"}, primary_key=["id"]
    )

    table.alter(DropColumn("item"), AddColumn("seller", "STRING"))
    assert _columns(client, home) == [("id", "int"), ("price", "int"), ("seller", "string")]
    home.open().alter_table(f"{home.database}.orders", [AlterType("price", "BIGINT")])
    assert _columns(client, home) == [("id", "int"), ("price", "bigint"), ("seller", "string")]


def test_who_dies_between_the_two_steps_of_a_change_leaves_an_entry_that_is_out_of_date(
    home: CatalogHome, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = home.open().create_table(
        f"{home.database}.orders", {"id": "INT", "item": "STRING", "price": "INT"}, primary_key=["id"]
    )
    alter = HiveEntries._alter

    def die_after_the_first_step(entries: HiveEntries, name: TableName, entry: Any) -> None:
        alter(entries, name, entry)
        if not entry.sd.cols:
            raise UnavailableError("the process ends here")

    monkeypatch.setattr(HiveEntries, "_alter", die_after_the_first_step)
    table.alter(DropColumn("item"))
    left = schema_id_of(client.get_table(home.database, "orders"))
    monkeypatch.undo()
    home.open()._entries.update(TableName(home.database, "orders"), table.refresh().schema)

    assert left == 0
    assert _columns(client, home) == [("id", "int"), ("price", "int")]


def test_a_hive_client_sees_a_renamed_table_where_it_is(home: CatalogHome, client: Any) -> None:
    catalog = home.open()
    catalog.create_table(f"{home.database}.orders", {"id": "INT"})

    renamed = catalog.rename_table(f"{home.database}.orders", f"{home.database}.purchases")

    assert client.get_all_tables(home.database) == ["purchases"]
    assert urlsplit(client.get_table(home.database, "purchases").sd.location).path == renamed.location


def test_who_drops_a_table_in_hive_deletes_no_file(home: CatalogHome, client: Any) -> None:
    table = home.open().create_table(f"{home.database}.orders", {"id": "INT"})
    table.append(pa.table({"id": pa.array([1], pa.int32())}))

    client.drop_table(home.database, "orders", True)

    assert open_catalog(home.warehouse).load_table(f"{home.database}.orders").to_arrow().num_rows == 1


def test_tables_of_other_formats_are_not_ours(home: CatalogHome, client: Any) -> None:
    catalog = home.open()
    catalog.create_database(home.database)
    storage = StorageDescriptor(
        cols=[FieldSchema("id", "int", None)],
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    client.create_table(Table(tableName="lines", dbName=home.database, sd=storage, partitionKeys=[], parameters={}))

    assert catalog.list_tables(home.database) == []
    with pytest.raises(AlreadyExistsError, match="is a Hive table in another format"):
        catalog.create_table(f"{home.database}.lines", {"id": "INT"})
    with pytest.raises(InvalidInputError, match="holds tables of other formats"):
        catalog.drop_database(home.database)
    client.drop_table(home.database, "lines", True)


@pytest.mark.parametrize("name", ["Orders", "my-orders"])
def test_names_that_hive_would_take_for_others_are_refused(home: CatalogHome, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"write '{name.lower().replace('-', '_')}'"):
        home.open().create_table(f"{home.database}.{name}", {"id": "INT"})
    with pytest.raises(InvalidInputError, match="is not a valid name in a Hive metastore"):
        home.open().load_table(f"{home.database}.{name}")


def test_a_location_that_the_metastore_can_not_reach_is_a_property(home: CatalogHome, client: Any) -> None:
    catalog = home.open({"location-in-properties": "true"})
    table = catalog.create_table(f"{home.database}.orders", {"id": "INT"})

    assert client.get_table(home.database, "orders").parameters["paimon_location"] == table.location
    assert home.open().load_table(f"{home.database}.orders").location == table.location


def test_a_metastore_that_does_not_answer_is_worth_another_try(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path), {"metastore": "hive", "uri": "thrift://127.0.0.1:1"})

    with pytest.raises(UnavailableError, match=r"thrift://127\.0\.0\.1:1 does not answer"):
        catalog.list_tables()


@pytest.mark.parametrize("uri", ["", "http://127.0.0.1:9083", "127.0.0.1", "thrift://host:port"])
def test_a_uri_that_names_no_metastore_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(InvalidInputError, match=r"uri.*thrift://host"):
        open_catalog(str(tmp_path), {"metastore": "hive", "uri": uri})


@pytest.mark.parametrize(
    ("ours", "hives"),
    [
        ("CHAR(3)", "char(3)"),
        ("CHAR(300)", "string"),
        ("VARCHAR(20)", "varchar(20)"),
        ("STRING", "string"),
        ("TIME(3)", "string"),
        ("BYTES", "binary"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "timestamp"),
        ("MAP<STRING, ROW<a INT, b ARRAY<DOUBLE>>>", "map<string,struct<a:int,b:array<double>>>"),
        ("MULTISET<STRING>", "map<string,int>"),
    ],
)
def test_types_are_the_nearest_that_hive_has(ours: str, hives: str) -> None:
    assert hive_type(type_of(ours)) == hives


def _columns(client: Any, home: CatalogHome) -> list[tuple[str, str]]:
    return [(each.name, each.type) for each in client.get_table(home.database, "orders").sd.cols]
