"""A table's whole life cycle in a remote warehouse: a real S3 server, a real HDFS, and a disk by its URL."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from local_s3 import LocalS3
from storage_lib import Catalog, InvalidInputError, load_table_at, open_catalog
from tests.support.every_file import data_files, needed_by_snapshots
from tests.support.orders_table import NAME, content, orders, rows
from tests.support.other_readers import (
    append_with_rust,
    needs_pypaimon,
    read_with_pypaimon,
    read_with_rust,
)
from tests.support.storages import OF_SERVERS, Storage, open_storage

OF_PYPAIMON = {
    "fs.s3.accessKeyId": "s3.access-key",
    "fs.s3.accessKeySecret": "s3.secret-key",
    "fs.s3.endpoint": "s3.endpoint",
    "fs.s3.region": "s3.region",
}


@pytest.fixture(params=OF_SERVERS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return open_storage(request.param, request, tmp_path)


@pytest.fixture
def catalog(place: Storage) -> Catalog:
    root = place.root if "://" in place.root else f"file://{place.root}"
    return open_catalog(root, {**place.options, "bucket": "1"})


def test_a_table_lives_and_ends(catalog: Catalog, place: Storage) -> None:
    table = orders(catalog)
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 3 30"))
    table.append(rows("+U a 1 11", "-D a 2 20"))
    assert content(table) == {"a 1 11", "b 3 30"}

    table.compact()
    table.tags.create("before", snapshot_id=1)
    table.overwrite(rows("+I b 4 40"), partition={"dt": "b"})
    assert content(load_table_at(table.address)) == {"a 1 11", "b 4 40"}
    assert table.to_arrow(snapshot_id=2).num_rows == 2

    table.maintenance.expire_snapshots(retain_last=1)
    table.maintenance.remove_orphan_files(older_than=timedelta(0))
    assert content(table) == {"a 1 11", "b 4 40"}
    assert table.to_arrow(tag="before").num_rows == 3
    assert data_files(table) == needed_by_snapshots(table.context.file_store)

    assert catalog.list_tables() == [NAME]
    catalog.drop_table(NAME)
    assert catalog.list_tables() == []
    assert not place.files.exists(table.location)


@needs_pypaimon
def test_others_read_and_write_a_table_in_s3_in_turns(s3: LocalS3, tmp_path: Path) -> None:
    warehouse = f"s3://lake{tmp_path}"
    table = orders(open_catalog(warehouse, s3.options))
    table.append(rows("+I a 1 10", "+I a 2 20"))
    theirs = pa.table({"dt": ["a", "b"], "id": [2, 3], "price": [21, 30]})

    of_rust = {"warehouse": warehouse, "s3.path-style-access": "true", **s3.options}
    append_with_rust(of_rust, NAME, theirs)
    table.append(rows("+U b 3 31"))
    table.compact()

    expected = [{"dt": "a", "id": 1, "price": 10}, {"dt": "a", "id": 2, "price": 21}, {"dt": "b", "id": 3, "price": 31}]
    of_pypaimon = {name: s3.options[ours] for name, ours in OF_PYPAIMON.items()}
    for read in (
        table.to_arrow(),
        read_with_rust(of_rust, NAME),
        read_with_pypaimon({"warehouse": warehouse, **of_pypaimon}, NAME, tmp_path),
    ):
        assert sorted(read.to_pylist(), key=lambda row: int(row["id"])) == expected


def test_what_a_connection_knows_of_its_store_is_not_stored_and_not_shown(s3: LocalS3, tmp_path: Path) -> None:
    table = orders(open_catalog(f"s3://lake{tmp_path}", {**s3.options, "target-file-size": "1 mb"}))

    stored = table.environment.file_io.read_bytes(f"{table.location}/schema/schema-0").decode()
    assert json.loads(stored)["options"]["target-file-size"] == "1 mb"
    assert "s3." not in stored
    assert s3.secret_key not in f"{stored} {table.address} {table.address!r} {table.describe()}"
    assert "'s3.access-key': '******'" in str(table.address)


def test_a_store_s_options_are_refused_for_a_table(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))

    with pytest.raises(InvalidInputError, match=r"s3\.endpoint configures the storage; give it to the catalog"):
        orders(catalog, **{"s3.endpoint": "http://127.0.0.1:1"})
    with pytest.raises(InvalidInputError, match=r"azure\.account-key is a secret"):
        orders(catalog, **{"azure.account-key": "sesame"})
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_that_is_not_there_and_a_wrong_key_are_told_from_an_empty_warehouse(s3: LocalS3) -> None:
    with pytest.raises(InvalidInputError, match="there is no such bucket"):
        open_catalog("s3://no-such-bucket/tables", s3.options).list_tables()
    with pytest.raises(InvalidInputError, match="Check the URL, the credentials"):
        open_catalog("s3://lake/tables", {**s3.options, "s3.secret-key": "wrong"}).list_tables()
    assert open_catalog("s3://lake/empty", s3.options).list_tables() == []
