"""Tables with a view are registered in a catalog that somebody else runs, and followed there.

The REST catalog is that of Iceberg's own tests, the metastore Hive's; PyIceberg, DuckDB and Polars read the metadata
that they name.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from storage_lib import (
    AddColumn,
    DropColumn,
    InvalidInputError,
    SetOption,
    UnavailableError,
    open_catalog,
)
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.file_store.snapshot.tag import VIEW_TAG_PREFIX
from tests.iceberg.drawn_views import draw_view, move, rows_at
from tests.iceberg.registered_lakes import COLUMNS, HIVE, OPTION, REST, Lake, behind
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.iceberg_readers import READERS, canonical, needs_readers, read_view
from tests.support.moved_clock import moved_environment

pytestmark = [needs("pyiceberg"), needs_readers, pytest.mark.integration]

STEPS = 12


def commit_of_another_program(lake: Lake) -> None:
    """Let the entry's newest snapshot be one that is not the table's."""
    from pyiceberg.table.metadata import TableMetadataV2, TableMetadataV3
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

    entry = lake.entry()
    if lake.kind == HIVE:
        # PyIceberg writes no metadata of version 3 by itself.
        value = json.loads(Path(entry.metadata_location).read_text())
        foreign_id = 7_000_000_000 + value["current-snapshot-id"]
        value["snapshots"].append({**value["snapshots"][-1], "snapshot-id": foreign_id})
        value["current-snapshot-id"] = value["refs"]["main"]["snapshot-id"] = foreign_id
        path = lake.warehouse / f"{foreign_id}.metadata.json"
        path.write_text(json.dumps(value))
        name_metadata(lake, str(path))
        return
    assert isinstance(entry.metadata, TableMetadataV2 | TableMetadataV3)
    newest = entry.metadata.snapshots[-1]
    row_ids = {"first_row_id": entry.metadata.next_row_id} if isinstance(entry.metadata, TableMetadataV3) else {}
    foreign = newest.model_copy(
        update={
            "snapshot_id": 7_000_000_000 + newest.snapshot_id,
            "parent_snapshot_id": newest.snapshot_id,
            "sequence_number": entry.metadata.last_sequence_number + 1,
            **row_ids,
        }
    )
    reference = {"ref-name": "main", "type": "branch", "snapshot-id": foreign.snapshot_id}
    updates = (AddSnapshotUpdate(snapshot=foreign), SetSnapshotRefUpdate.model_validate(reference))
    entry.catalog.commit_table(entry, (), updates)


def name_metadata(lake: Lake, path: str) -> None:
    """Let the entry in the metastore name this metadata, as a program does that commits to it."""
    from storage_lib.hive.hive_metastore import HiveMetastore

    def change(client: Any) -> None:
        entry = client.get_table(lake.database, "t")
        entry.parameters["metadata_location"] = path
        client.alter_table(lake.database, "t", entry)

    HiveMetastore(lake.uri, option="uri").tell("alter", change)


@pytest.mark.parametrize("seed", thinned(range(40), keep=2))
def test_clients_of_the_catalog_see_the_rows_after_each_commit(lake: Lake, tmp_path: Path, seed: int) -> None:
    """The life has commits without the catalog, and other programs that commit to the entry or drop it."""
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, lake.catalog, lake.name, [lake.kind])
    without = open_catalog(lake.warehouse)
    for _ in range(STEPS):
        catalog = without if rng.random() < 0.15 else lake.catalog
        drawn.table = catalog.load_table(lake.name)
        print(move(drawn, rng), catalog is without)
        if rng.random() < 0.15 and lake.others.table_exists(lake.name) and lake.entry().metadata.snapshots:
            commit_of_another_program(lake)
            continue
        if rng.random() < 0.1 and lake.others.table_exists(lake.name):
            lake.others.drop_table(lake.name)
            continue
        if catalog is without:
            continue
        table = drawn.table = lake.catalog.load_table(lake.name)
        table.maintenance.publish_iceberg()
        if table.inspect.latest_snapshot_id() is None:
            continue
        assert table.inspect.health().view_lag == 0
        entry = lake.entry()
        shown = entry.metadata.current_snapshot_id
        if shown is None:
            assert drawn.combines
            continue
        is_newest = shown == table.inspect.latest_snapshot_id()
        expected = table.to_arrow() if is_newest else rows_at(table, shown)
        # Readers see older rows under the newest schema, which the snapshot's own rows need not have.
        has_schema = is_newest or expected.schema.names == [each.name for each in entry.schema().fields]
        for reader in READERS if has_schema else ():
            seen = read_view(reader, entry.metadata_location, tmp_path, None)
            assert canonical(seen, expected.column_names) == canonical(expected, expected.column_names), reader
        for snapshot in entry.metadata.snapshots:
            past = read_view("pyiceberg", entry.metadata_location, tmp_path, snapshot.snapshot_id)
            want = rows_at(table, snapshot.snapshot_id)
            assert canonical(past, want.column_names) == canonical(want, want.column_names), snapshot.snapshot_id
        shown_tags = [tag for tag in table.tags.list() if tag.snapshot.id >= drawn.begins]
        tags = {tag.name for tag in shown_tags if not tag.name.startswith(VIEW_TAG_PREFIX)}
        if drawn.combines:
            assert {"main"} <= {*entry.metadata.refs} <= {"main", *tags}
        else:
            assert {*entry.metadata.refs} == {"main", *tags}


def test_a_commit_stands_while_the_catalog_is_down_and_the_next_one_catches_up(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    with behind(lake) as (reached, network):
        table = reached.created()
        network.stop()

        with caplog.at_level(logging.WARNING):
            table.append([{"id": 3, "n": 3}])

        assert "does not answer" in caplog.text
        assert table.inspect.health().view_lag == 1
        assert table.count() == 3
        with pytest.raises(UnavailableError, match="does not answer"):
            table.maintenance.publish_iceberg()
        network.start()
        table.upsert([{"id": 3, "n": 4}])
        assert table.inspect.health().view_lag == 0
        assert lake.shown() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": 4}]


def test_a_process_without_the_catalog_leaves_the_entry_to_others(lake: Lake) -> None:
    table = open_catalog(lake.warehouse).create_table(lake.name, COLUMNS, primary_key=["id"], options=lake.options)
    table.append([{"id": 1, "n": 1}])
    assert table.inspect.health().view_lag == 1
    assert not lake.others.namespace_exists(lake.database)

    lake.catalog.load_table(lake.name).append([{"id": 2, "n": 2}])

    assert table.refresh().inspect.health().view_lag == 0
    assert lake.shown() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]


def test_two_processes_that_commit_at_once_leave_the_newest_snapshot(lake: Lake) -> None:
    lake.created()

    def append(first: int) -> None:
        table = lake.catalog.load_table(lake.name)
        for number in range(first, first + 5):
            table.append([{"id": number, "n": number}])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(append, (10, 20)))

    table = lake.catalog.load_table(lake.name)
    table.maintenance.publish_iceberg()
    assert lake.shown() == sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


def test_a_table_of_somebody_else_with_this_name_is_not_replaced(lake: Lake) -> None:
    from pyiceberg.schema import Schema

    lake.others.create_namespace(lake.database)
    place = (lake.warehouse / "somebody's").as_uri()
    lake.others.create_table(lake.name, Schema(), location=place)

    table = lake.created()

    with pytest.raises(InvalidInputError, match="has another table"):
        table.maintenance.publish_iceberg()
    assert lake.entry().metadata.snapshots == []
    lake.catalog.drop_table(lake.name)
    assert lake.others.table_exists(lake.name)


def test_a_view_of_hive_with_this_name_is_not_replaced(hive_lake: Lake) -> None:
    from pymetastore.hive_metastore.ttypes import Database, SerDeInfo, StorageDescriptor, Table

    from storage_lib.hive.hive_metastore import HiveMetastore

    place = hive_lake.warehouse.as_uri()
    view = Table(
        tableName="t",
        dbName=hive_lake.database,
        tableType="VIRTUAL_VIEW",
        viewOriginalText="SELECT 1",
        viewExpandedText="SELECT 1",
        partitionKeys=[],
        parameters={},
        sd=StorageDescriptor(cols=[], parameters={}, serdeInfo=SerDeInfo(parameters={}), bucketCols=[], sortCols=[]),
    )
    metastore = HiveMetastore(hive_lake.uri, option="uri")
    metastore.tell("create", lambda client: client.create_database(Database(hive_lake.database, "", place, {})))
    metastore.tell("create", lambda client: client.create_table(view))

    table = hive_lake.created()

    with pytest.raises(InvalidInputError, match="has another table"):
        table.maintenance.publish_iceberg()


def test_an_entry_ends_with_its_table_its_name_and_its_option(lake: Lake) -> None:
    table = lake.created()

    lake.catalog.rename_table(lake.name, f"{lake.database}.u")
    table = lake.catalog.load_table(f"{lake.database}.u")
    table.append([{"id": 3, "n": 3}])
    assert lake.others.list_tables(lake.database) == [(lake.database, "u")]

    table = table.alter(SetOption(OPTION, "hadoop-catalog"))
    assert lake.others.list_tables(lake.database) == []
    assert table.inspect.health().view_lag == 0
    table = table.alter(SetOption(OPTION, lake.kind))
    assert lake.others.list_tables(lake.database) == [(lake.database, "u")]

    lake.catalog.drop_table(f"{lake.database}.u")
    assert lake.others.list_tables(lake.database) == []


def test_a_column_is_there_before_a_row_has_it(lake: Lake) -> None:
    table = lake.created().alter(AddColumn("more", "STRING"))

    assert lake.shown() == [{"id": 1, "n": 1, "more": None}, {"id": 2, "n": 2, "more": None}]
    assert table.inspect.health().view_lag == 0


def test_an_entry_of_rest_is_read_after_the_files_of_older_views_are_gone(rest_lake: Lake) -> None:
    """The catalog's metadata is its own: that of the view is deleted some minutes after the next commit."""
    rest_lake.created()

    root = rest_lake.warehouse / "iceberg" / rest_lake.database / "t" / "metadata"
    for path in root.glob("v*.metadata.json"):
        path.unlink()

    assert rest_lake.shown() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]


def test_secrets_of_the_catalog_are_options_of_the_connection_alone(rest_lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="give it to the catalog"):
        rest_lake.catalog.create_table(
            rest_lake.name,
            COLUMNS,
            primary_key=["id"],
            options={**rest_lake.options, "iceberg.rest.uri": rest_lake.uri},
        )
    table = rest_lake.created()
    assert not [key for key in table.schema.options if key.startswith("iceberg.rest")]


def test_properties_of_an_entry_name_no_module_that_is_imported(rest_lake: Lake, tmp_path: Path) -> None:
    """PyIceberg imports the module that ``py-io-impl`` names, also where a table proposes it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.table.update import SetPropertiesUpdate

    from storage_lib.iceberg.register.rest_client import RestClient

    table = rest_lake.created()
    (tmp_path / "proposed_module.py").write_text("raise SystemExit('was imported')\n")
    entry = rest_lake.entry()
    proposed = SetPropertiesUpdate(updates={"py-io-impl": "proposed_module.Files", "s3.region": "eu"})
    entry.catalog.commit_table(entry, (), (proposed,))

    table.append([{"id": 3, "n": 3}])

    assert table.inspect.health().view_lag == 0
    files = RestClient("reader", {"uri": rest_lake.uri}).load_table(rest_lake.name).io
    assert type(files) is PyArrowFileIO
    assert files.properties == {"s3.region": "eu"}


def test_metadata_that_the_metastore_names_stays_while_others_commit_without_it(hive_lake: Lake) -> None:
    """Else the view would delete its older metadata some minutes after the next commit."""
    table = hive_lake.created()
    named = hive_lake.entry().metadata_location

    for number in range(3, 8):
        without = WarehouseCatalog(str(hive_lake.warehouse), environment=moved_environment(3600 * number))
        without.load_table(hive_lake.name).append([{"id": number, "n": number}])

    assert hive_lake.entry().metadata_location == named
    assert hive_lake.shown() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]
    table.append([{"id": 9, "n": 9}])
    assert len(hive_lake.shown()) == 8


def test_a_commit_to_the_entry_is_replaced_and_the_log_says_so(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    table = lake.created()
    commit_of_another_program(lake)
    assert lake.entry().metadata.current_snapshot_id != table.inspect.latest_snapshot_id()

    with caplog.at_level(logging.WARNING):
        table.append([{"id": 3, "n": 3}])

    assert "others have changed its entry" in caplog.text
    assert len(lake.shown()) == 3


def test_a_column_that_was_dropped_is_gone_from_the_metastore(hive_lake: Lake) -> None:
    """Metastores compare the types of columns by position."""
    table = hive_lake.catalog.create_table(
        hive_lake.name,
        {"id": "BIGINT", "text": "STRING", "n": "INT"},
        primary_key=["id"],
        options=hive_lake.options,
    )
    table.append([{"id": 1, "text": "a", "n": 1}])

    table.alter(DropColumn("text"))

    assert hive_lake.shown() == [{"id": 1, "n": 1}]
    assert columns_in_the_metastore(hive_lake) == [("id", "bigint"), ("n", "int")]


def columns_in_the_metastore(lake: Lake) -> list[tuple[str, str]]:
    from storage_lib.hive.hive_metastore import HiveMetastore

    metastore = HiveMetastore(lake.uri, option="uri")
    entry = metastore.ask("look", lambda client: client.get_table(lake.database, "t"))
    return [(column.name, column.type) for column in entry.sd.cols]


def test_a_table_of_a_metastore_has_its_view_there_under_another_name(hive_lake: Lake) -> None:
    """The catalog's own entry, in Paimon's format, has the name already."""
    options = {"metastore": "hive", "uri": hive_lake.uri, "iceberg.hive.uri": hive_lake.uri}
    catalog = open_catalog(hive_lake.warehouse, options)
    table = catalog.create_table(hive_lake.name, COLUMNS, primary_key=["id"], options=hive_lake.options)
    table.append([{"id": 1, "n": 1}])
    with pytest.raises(InvalidInputError, match=r"has another table .*metadata\.iceberg\.database"):
        table.maintenance.publish_iceberg()

    table = table.alter(SetOption("metadata.iceberg.table", "t_iceberg"))

    assert table.inspect.health().view_lag == 0
    seen = hive_lake.others.load_table(f"{hive_lake.database}.t_iceberg").scan().to_arrow()
    assert seen.to_pylist() == [{"id": 1, "n": 1}]
    catalog.drop_table(hive_lake.name)
    assert hive_lake.others.list_tables(hive_lake.database) == []


def test_an_entry_can_have_another_name_in_another_database(lake: Lake) -> None:
    table = lake.created()

    table = table.alter(
        SetOption("metadata.iceberg.database", f"{lake.database}_2"), SetOption("metadata.iceberg.table", "seen")
    )
    table.append([{"id": 3, "n": 3}])

    assert lake.others.list_tables(lake.database) == []
    assert len(lake.others.load_table(f"{lake.database}_2.seen").scan().to_arrow()) == 3
    assert table.inspect.health().view_lag == 0


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("request_word", [b"create_table", b"alter_table", b"unlock", b"drop_table"])
def test_an_answer_of_the_metastore_that_is_lost_costs_nothing(
    hive_lake: Lake,
    request_word: bytes,
    is_done: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    with behind(hive_lake) as (reached, network):
        network.cut(request_word, is_done=is_done)
        table = reached.created()
        table.append([{"id": 3, "n": 3}])
        table.append([{"id": 4, "n": 4}])

        assert len(hive_lake.shown()) == 4
        assert table.inspect.health().view_lag == 0
        reached.catalog.drop_table(reached.name)
        assert network.struck == 1
    if (request_word, is_done) != (b"drop_table", False):
        assert hive_lake.others.list_tables(hive_lake.database) == []


def test_what_one_catalog_shows_says_nothing_of_another(hive_lake: Lake) -> None:
    hive_lake.created()
    without = open_catalog(hive_lake.warehouse).load_table(hive_lake.name)
    assert without.inspect.health().view_lag == 0

    without = without.alter(SetOption(OPTION, REST))

    assert without.inspect.health().view_lag == 1


def test_a_lock_that_others_keep_delays_the_entry_but_not_the_commit(
    hive_lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    from storage_lib.hive.hive_metastore import HiveMetastore
    from storage_lib.hive.table_lock import give_back, request_lock

    table = hive_lake.created()
    metastore = HiveMetastore(hive_lake.uri, option="uri")
    lock_id = request_lock(metastore, hive_lake.database, "t")
    assert lock_id is not None

    with caplog.at_level(logging.WARNING):
        table.append([{"id": 3, "n": 3}])

    assert "others keep the lock" in caplog.text
    assert (table.count(), len(hive_lake.shown()), table.inspect.health().view_lag) == (3, 2, 1)
    give_back(metastore, lock_id)
    table.maintenance.publish_iceberg()
    assert len(hive_lake.shown()) == 3


def test_a_metastore_whose_address_is_wrong_is_named(hive_lake: Lake) -> None:
    catalog = open_catalog(hive_lake.warehouse, {"iceberg.hive.uri": "http://127.0.0.1:1"})
    table = catalog.create_table(hive_lake.name, COLUMNS, primary_key=["id"], options=hive_lake.options)
    table.append([{"id": 1, "n": 1}])

    with pytest.raises(InvalidInputError, match=r"option iceberg\.hive\.uri is 'http://127\.0\.0\.1:1'"):
        table.maintenance.publish_iceberg()
