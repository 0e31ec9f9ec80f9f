"""Entries in catalogs of others stay right where places, processes, names and the catalogs themselves are difficult."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage_lib import (
    Catalog,
    DynamicTable,
    InvalidInputError,
    SetComment,
    SetOption,
    StorageError,
    open_catalog,
)
from storage_lib.iceberg.register.view_entry import ViewEntry
from storage_lib.table.protocol.table_context import TableContext
from tests.iceberg.registered_lakes import COLUMNS, HIVE, OPTION, REST, Lake, behind
from tests.support.extras import needs
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.iceberg_readers import needs_readers

pytestmark = [needs("pyiceberg"), needs_readers, pytest.mark.integration]

ROWS = [{"id": 1, "n": 1}]


def names(lake: Lake) -> list[str]:
    """Return the names of the entries in the lake's database."""
    return sorted(name for _, name in lake.others.list_tables(lake.database))


def of_the_metastore(lake: Lake, act: Callable[[Any], Any]) -> Any:
    from storage_lib.hive.hive_metastore import HiveMetastore

    return HiveMetastore(lake.uri, option="uri").ask("look", act)


def stored(lake: Lake, name: str = "t") -> Any:
    """Return the metastore's entry."""
    return of_the_metastore(lake, lambda client: client.get_table(lake.database, name))


def alter_stored(lake: Lake, change: Callable[[dict[str, str]], None]) -> None:
    """Let another program change the properties of the entry in the metastore."""
    entry = stored(lake)
    change(entry.parameters)
    of_the_metastore(lake, lambda client: client.alter_table(lake.database, "t", entry))


def test_an_entry_of_a_relative_warehouse_is_read_in_other_directories(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The servers run in a third directory.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    catalog = replace(lake, warehouse=Path("here")).catalog
    table = catalog.create_table(lake.name, COLUMNS, primary_key=["id"], options=lake.options)
    table.append(ROWS)

    monkeypatch.chdir(elsewhere)

    assert (lake.shown(), table.inspect.health().view_lag) == (ROWS, 0)
    entry = lake.entry()
    (snapshot,) = entry.metadata.snapshots
    (task,) = entry.scan().plan_files()
    for place in (entry.metadata_location, entry.metadata.location, snapshot.manifest_list, task.file.file_path):
        assert place.removeprefix("file:").startswith(f"{tmp_path}/here/"), place
    table.append([{"id": 2, "n": 2}])
    assert lake.shown() == [*ROWS, {"id": 2, "n": 2}]
    catalog.drop_table(lake.name)
    assert names(lake) == []


def test_a_percent_sign_in_a_path_is_one(hive_lake: Lake, tmp_path: Path) -> None:
    with_sign = replace(hive_lake, warehouse=tmp_path / "a%20b").catalog
    with_space = replace(hive_lake, warehouse=tmp_path / "a b").catalog
    table = with_sign.create_table(hive_lake.name, COLUMNS, primary_key=["id"], options=hive_lake.options)
    other = with_space.create_table(hive_lake.name, COLUMNS, primary_key=["id"], options=hive_lake.options)

    table.append(ROWS)

    assert (hive_lake.shown(), table.inspect.health().view_lag) == (ROWS, 0)
    with pytest.raises(InvalidInputError, match="has another table"):
        other.maintenance.publish_iceberg()
    with_space.drop_table(hive_lake.name)
    assert names(hive_lake) == ["t"]
    with_sign.drop_table(hive_lake.name)
    assert names(hive_lake) == []


CHANGES: dict[str, tuple[Callable[[Catalog, DynamicTable], object], list[str]]] = {
    "another kind": (lambda _, table: table.alter(SetOption(OPTION, "hadoop-catalog")), []),
    "none": (lambda _, table: table.alter(SetOption(OPTION, "disabled")), []),
    "another name": (lambda _, table: table.alter(SetOption("metadata.iceberg.table", "u")), ["u"]),
    "drop": (lambda catalog, table: catalog.drop_table(table.name), []),
    "rename": (lambda catalog, table: catalog.rename_table(table.name, f"{table.name}2"), ["t2"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_object_from_before_a_change_registers_nothing_that_ended(lake: Lake, change: str) -> None:
    table, old = lake.created(), lake.catalog.load_table(lake.name)
    act, left = CHANGES[change]
    act(lake.catalog, table)

    for verb in (old.maintenance.publish_iceberg, lambda: old.tags.create("kept")):
        try:
            verb()
        except StorageError:
            assert change in ("drop", "rename")

    assert names(lake) == left


@pytest.mark.parametrize("by", ["a commit", "publish_iceberg"])
@pytest.mark.parametrize("change", ["another kind", "another name", "another catalog"])
def test_an_entry_that_a_crashed_alter_left_is_told_and_removed(
    lake: Lake, change: str, by: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = with_both_catalogs(lake, request)
    lake.created()
    other = next(kind for kind in (REST, HIVE) if kind != lake.kind)
    option = {
        "another kind": SetOption(OPTION, "hadoop-catalog"),
        "another name": SetOption("metadata.iceberg.table", "u"),
        "another catalog": SetOption(OPTION, other),
    }[change]

    def crash(*_: object) -> None:
        raise SimulatedCrash

    table = both.load_table(lake.name)
    with monkeypatch.context() as patched:
        patched.setattr(TableContext, "succeed_view", crash)
        with pytest.raises(SimulatedCrash):
            table.alter(option)

    table = both.load_table(lake.name)
    health = table.inspect.health()
    assert (names(lake), bool(health.view_lag or health.view_problem)) == (["t"], True)
    if by == "a commit":
        table.append(ROWS)
        assert (table.inspect.health().view_problem is None) == (change != "another kind")
    if by != "a commit" or change == "another kind":
        table.maintenance.publish_iceberg()
    assert names(lake) == (["u"] if change == "another name" else [])
    assert (table.inspect.health().view_lag, table.inspect.health().view_problem) == (0, None)


def with_both_catalogs(lake: Lake, request: pytest.FixtureRequest) -> Catalog:
    """Return the catalog of a connection that names the REST catalog and the metastore."""
    uris = {
        "iceberg.rest.uri": request.getfixturevalue("iceberg_rest").uri,
        "iceberg.hive.uri": request.getfixturevalue("metastore").uri,
    }
    return open_catalog(lake.warehouse, uris)


@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_that_registers_while_the_entry_ends_leaves_none(
    lake: Lake, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (lake.kind, change) == (REST, "rename"):
        pytest.skip("the catalog's metadata moves with the table, so it can't load what the writer registered")
    table, old = lake.created(), lake.catalog.load_table(lake.name)
    remove = ViewEntry.remove
    others: list[str] = []

    def with_a_writer_after_it(entry: ViewEntry) -> None:
        remove(entry)
        if not others:
            others.append("writer")
            try:
                old.append([{"id": 3, "n": 3}])
                old.maintenance.publish_iceberg()
            except StorageError as error:
                others.append(str(error))

    monkeypatch.setattr(ViewEntry, "remove", with_a_writer_after_it)
    act, left = CHANGES[change]
    act(lake.catalog, table)

    assert others
    assert names(lake) == left


def test_the_lock_of_a_process_that_died_is_given_back(
    hive_lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from storage_lib.hive import table_lock
    from storage_lib.hive.hive_metastore import HiveMetastore

    table = hive_lake.created()
    metastore = HiveMetastore(hive_lake.uri, option="uri")
    abandoned = table_lock.request_lock(metastore, hive_lake.database, "t")
    assert abandoned is not None
    table.append([{"id": 3, "n": 3}])
    assert len(hive_lake.shown()) == 2, "it may be alive"
    monkeypatch.setattr(table_lock, "ABANDONED_MILLIS", -1)

    with caplog.at_level(logging.WARNING):
        table.append([{"id": 4, "n": 4}])

    assert f"lock {abandoned} on {hive_lake.database}.t" in caplog.text
    assert len(hive_lake.shown()) == 4
    assert not table_lock.beat(metastore, abandoned)


def test_a_process_that_lost_its_lock_while_it_was_suspended_changes_nothing(
    hive_lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from storage_lib.hive.table_lock import give_back, request_lock
    from storage_lib.iceberg.register import hive_registration

    table, other = hive_lake.created(), hive_lake.catalog.load_table(hive_lake.name)

    def suspended_after_it(metastore: Any, database: str, name: str) -> int | None:
        lock_id = request_lock(metastore, database, name)
        assert lock_id is not None
        monkeypatch.setattr(hive_registration, "request_lock", request_lock)
        give_back(metastore, lock_id)
        return lock_id

    monkeypatch.setattr(hive_registration, "request_lock", suspended_after_it)
    with caplog.at_level(logging.WARNING):
        table.append([{"id": 3, "n": 3}])

    assert "the lock of its entry" in caplog.text
    assert len(hive_lake.shown()) == 2
    other.append([{"id": 4, "n": 4}])
    assert len(hive_lake.shown()) == 4


def test_a_lock_that_an_outage_left_is_given_back_by_the_next_commit(hive_lake: Lake) -> None:
    with behind(hive_lake) as (reached, network):
        table = reached.created()
        network.cut(b"alter_table", is_done=False, meanwhile=network.stop)
        table.append([{"id": 3, "n": 3}])
        assert table.inspect.health().view_lag == 1
        network.start()

        table.append([{"id": 4, "n": 4}])

        assert (len(hive_lake.shown()), table.inspect.health().view_lag) == (4, 0)


def test_a_metastore_that_hangs_delays_one_commit_and_not_each(
    hive_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from storage_lib.iceberg.register import hive_registration, view_entry

    monkeypatch.setattr(hive_registration, "_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(view_entry, "_PATIENCE_SECONDS", 0.2)
    connected: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def accept() -> None:
            while True:
                try:
                    connected.append(silent.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        catalog = open_catalog(
            hive_lake.warehouse, {"iceberg.hive.uri": f"thrift://127.0.0.1:{silent.getsockname()[1]}"}
        )
        table = catalog.create_table(hive_lake.name, COLUMNS, primary_key=["id"], options=hive_lake.options)
        for number in range(4):
            table.append([{"id": number, "n": 1}])
        tried = len(connected)
        with pytest.raises(StorageError, match="does not answer"):
            table.maintenance.publish_iceberg()

        assert (tried, len(connected), table.count()) == (2, 3, 4), "at CREATE, at the first commit, and when told to"
        silent.shutdown(socket.SHUT_RDWR)
    for each in connected:
        each.close()


def test_what_the_metastore_refuses_is_told_with_its_reason(hive_lake: Lake) -> None:
    options = {**hive_lake.options, "metadata.iceberg.table": "a.b"}
    table = hive_lake.catalog.create_table(hive_lake.name, COLUMNS, primary_key=["id"], options=options)
    table.append(ROWS)

    with pytest.raises(InvalidInputError, match=r"refused its entry .*a\.b is not a valid object name"):
        table.maintenance.publish_iceberg()


@pytest.mark.parametrize(
    "column",
    [
        {"part": "ROW<`a-b` INT, plain INT>"},
        {"part": "ARRAY<ROW<`x:y` INT>>"},
        {"name, which is long " + "n" * 800: "INT"},
        {"Upper": "INT"},
    ],
    ids=["in a row", "in an array", "long", "upper case"],
)
def test_columns_that_hive_does_not_know_do_not_stop_the_entry(hive_lake: Lake, column: dict[str, str]) -> None:
    catalog = hive_lake.catalog
    table = catalog.create_table(
        hive_lake.name, {"id": "BIGINT", **column}, primary_key=["id"], options=hive_lake.options
    )
    table = table.alter(SetComment("😀" * 200, "id"))

    table.append([{"id": 1, **dict.fromkeys(column)}])
    table.maintenance.publish_iceberg()

    assert [row["id"] for row in hive_lake.shown()] == [1]
    assert table.inspect.health().view_lag == 0
    parameters = stored(hive_lake).parameters
    assert parameters["previous_metadata_location"] != parameters["metadata_location"], "nothing was left to change"


def test_what_another_program_left_in_the_entry_ends_with_the_next_commit(hive_lake: Lake) -> None:
    table = hive_lake.created()

    def leave(parameters: dict[str, str]) -> None:
        del parameters["metadata_location"]
        parameters.update({"external.table.purge": "true", "current-snapshot-id": "77"})

    alter_stored(hive_lake, leave)
    table.append([{"id": 3, "n": 3}])

    assert len(hive_lake.shown()) == 3
    assert not {"external.table.purge", "current-snapshot-id"} & set(stored(hive_lake).parameters)


def test_a_slow_process_does_not_say_that_the_entry_is_behind(hive_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage_lib.iceberg.register.hive_registration import HiveRegistration

    table, other = hive_lake.created(), hive_lake.catalog.load_table(hive_lake.name)
    follow = HiveRegistration.follow

    def slow(registration: HiveRegistration, *arguments: Any) -> None:
        monkeypatch.setattr(HiveRegistration, "follow", follow)
        follow(registration, *arguments)
        other.maintenance.publish_iceberg()

    table.append([{"id": 3, "n": 3}])
    monkeypatch.setattr(HiveRegistration, "follow", slow)
    table.append([{"id": 4, "n": 4}])

    assert table.inspect.health().view_lag == 0


@pytest.mark.parametrize("key", ["iceberg.rest.uri", "iceberg.rest.other", "iceberg.hive.uri", "iceberg.hive.other"])
def test_addresses_of_catalogs_are_no_options_of_a_table(tmp_path: Path, key: str) -> None:
    catalog = open_catalog(tmp_path)
    table = catalog.create_table("shop.t", COLUMNS)

    with pytest.raises(InvalidInputError, match="configures the catalog; give it to the catalog"):
        table.alter(SetOption(key, "thrift://127.0.0.1:1"))
    with pytest.raises(InvalidInputError, match="configures the catalog; give it to the catalog"):
        catalog.create_table("shop.u", COLUMNS, options={key: "thrift://127.0.0.1:1"})
