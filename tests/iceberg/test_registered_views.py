"""Tables with a view are registered in an Iceberg REST catalog that somebody else runs, and followed there.

The catalog is that of Iceberg's own tests; PyIceberg, DuckDB and Polars read the metadata that it names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from local_iceberg_rest import LocalIcebergRest
from storage_lib import AddColumn, DynamicTable, InvalidInputError, SetOption, UnavailableError, open_catalog
from storage_lib.catalog.catalog import Catalog
from storage_lib.file_store.snapshot.tag import VIEW_TAG_PREFIX
from tests.iceberg.drawn_views import draw_view, move, rows_at
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.iceberg_readers import READERS, canonical, needs_readers, read_view

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table import Table

pytestmark = [needs("pyiceberg"), needs_readers, pytest.mark.integration]

COLUMNS = {"id": "BIGINT", "n": "INT"}
OPTIONS = {"metadata.iceberg.storage": "rest-catalog", "log.system": "none"}
STEPS = 12


@dataclass
class Lake:
    """A warehouse whose tables are registered in ``server``, under a database of the test's own."""

    warehouse: Path
    server: LocalIcebergRest
    database: str

    @property
    def catalog(self) -> Catalog:
        return open_catalog(self.warehouse, {"iceberg.rest.uri": self.server.uri})

    @property
    def name(self) -> str:
        return f"{self.database}.t"

    @property
    def rest(self) -> RestCatalog:
        from pyiceberg.catalog.rest import RestCatalog

        return RestCatalog("reader", uri=self.server.uri)

    def created(self) -> DynamicTable:
        table = self.catalog.create_table(self.name, COLUMNS, primary_key=["id"], options=OPTIONS)
        table.append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
        return table

    def entry(self) -> Table:
        return self.rest.load_table(self.name)

    def shown(self) -> list[dict[str, object]]:
        """Return the rows that a client of the catalog reads."""
        return sorted(self.entry().scan().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def lake(tmp_path: Path, iceberg_rest: LocalIcebergRest, request: pytest.FixtureRequest) -> Lake:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    return Lake(tmp_path / "lake", iceberg_rest, name.lower())


@pytest.fixture
def own_server(tmp_path: Path, iceberg_rest: LocalIcebergRest) -> Iterator[LocalIcebergRest]:
    """Start a catalog that the test may stop."""
    assert iceberg_rest.pid is not None
    with LocalIcebergRest(tmp_path / "server") as server:
        yield server


def commit_of_another_program(entry: Table) -> None:
    """Let the entry's newest snapshot be one that is not the table's."""
    from pyiceberg.table.metadata import TableMetadataV2, TableMetadataV3
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

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


@pytest.mark.parametrize("seed", thinned(range(40), keep=2))
def test_clients_of_the_catalog_see_the_rows_after_each_commit(lake: Lake, tmp_path: Path, seed: int) -> None:
    """The life has commits without the catalog, and other programs that commit to the entry or drop it."""
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, lake.catalog, lake.name, ["rest-catalog"])
    without = open_catalog(lake.warehouse)
    for _ in range(STEPS):
        catalog = without if rng.random() < 0.15 else lake.catalog
        drawn.table = catalog.load_table(lake.name)
        print(move(drawn, rng), catalog is without)
        if rng.random() < 0.15 and lake.rest.table_exists(lake.name) and lake.entry().metadata.snapshots:
            commit_of_another_program(lake.entry())
            continue
        if rng.random() < 0.1 and lake.rest.table_exists(lake.name):
            lake.rest.drop_table(lake.name)
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
    tmp_path: Path, own_server: LocalIcebergRest, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(tmp_path / "lake", own_server, "d")
    table = lake.created()
    own_server.stop()

    with caplog.at_level(logging.WARNING):
        table.append([{"id": 3, "n": 3}])

    assert "does not answer" in caplog.text
    assert table.inspect.health().view_lag == 1
    assert table.count() == 3
    with pytest.raises(UnavailableError, match="does not answer"):
        table.maintenance.publish_iceberg()
    own_server.start()
    table.upsert([{"id": 3, "n": 4}])
    assert table.inspect.health().view_lag == 0
    assert lake.shown() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": 4}]


def test_a_process_without_the_catalog_leaves_the_entry_to_others(lake: Lake) -> None:
    table = open_catalog(lake.warehouse).create_table(lake.name, COLUMNS, primary_key=["id"], options=OPTIONS)
    table.append([{"id": 1, "n": 1}])
    assert table.inspect.health().view_lag == 1
    assert not lake.rest.namespace_exists(lake.database)

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

    lake.rest.create_namespace(lake.database)
    lake.rest.create_table(lake.name, Schema())

    table = lake.created()

    with pytest.raises(InvalidInputError, match="has another table of this name"):
        table.maintenance.publish_iceberg()
    assert lake.entry().metadata.snapshots == []
    lake.catalog.drop_table(lake.name)
    assert lake.rest.table_exists(lake.name)


def test_an_entry_ends_with_its_table_its_name_and_its_option(lake: Lake) -> None:
    table = lake.created()

    lake.catalog.rename_table(lake.name, f"{lake.database}.u")
    table = lake.catalog.load_table(f"{lake.database}.u")
    table.append([{"id": 3, "n": 3}])
    assert lake.rest.list_tables(lake.database) == [(lake.database, "u")]

    table = table.alter(SetOption("metadata.iceberg.storage", "hadoop-catalog"))
    assert lake.rest.list_tables(lake.database) == []
    assert table.inspect.health().view_lag == 0
    table = table.alter(SetOption("metadata.iceberg.storage", "rest-catalog"))
    assert lake.rest.list_tables(lake.database) == [(lake.database, "u")]

    lake.catalog.drop_table(f"{lake.database}.u")
    assert lake.rest.list_tables(lake.database) == []


def test_a_column_is_there_before_a_row_has_it(lake: Lake) -> None:
    table = lake.created().alter(AddColumn("more", "STRING"))

    assert lake.shown() == [{"id": 1, "n": 1, "more": None}, {"id": 2, "n": 2, "more": None}]
    assert table.inspect.health().view_lag == 0


def test_the_entry_is_read_after_the_files_of_older_views_are_gone(lake: Lake) -> None:
    """The catalog's metadata is its own: that of the view is deleted some minutes after the next commit."""
    lake.created()

    root = Path(lake.warehouse) / "iceberg" / lake.database / "t" / "metadata"
    for path in root.glob("v*.metadata.json"):
        path.unlink()

    assert lake.shown() == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]


def test_secrets_of_the_catalog_are_options_of_the_connection_alone(lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="give it to the catalog"):
        lake.catalog.create_table(
            lake.name, COLUMNS, primary_key=["id"], options={**OPTIONS, "iceberg.rest.uri": lake.server.uri}
        )
    table = lake.created()
    assert not [key for key in table.schema.options if key.startswith("iceberg.rest")]


def test_properties_of_an_entry_name_no_module_that_is_imported(lake: Lake, tmp_path: Path) -> None:
    """PyIceberg imports the module that ``py-io-impl`` names, also where a table proposes it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.table.update import SetPropertiesUpdate

    from storage_lib.iceberg.register.rest_client import RestClient

    table = lake.created()
    (tmp_path / "proposed_module.py").write_text("raise SystemExit('was imported')\n")
    entry = lake.entry()
    proposed = SetPropertiesUpdate(updates={"py-io-impl": "proposed_module.Files", "s3.region": "eu"})
    entry.catalog.commit_table(entry, (), (proposed,))

    table.append([{"id": 3, "n": 3}])

    assert table.inspect.health().view_lag == 0
    files = RestClient("reader", {"uri": lake.server.uri}).load_table(lake.name).io
    assert type(files) is PyArrowFileIO
    assert files.properties == {"s3.region": "eu"}
