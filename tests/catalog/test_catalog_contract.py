"""Contract of every catalog, wherever it keeps its entries."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    AlreadyExistsError,
    Catalog,
    DynamicTable,
    InvalidInputError,
    NotFoundError,
    StorageError,
    load_table_at,
    open_catalog,
)
from storage_lib.catalog.lifecycle.catalog_orphans import Orphan, OrphanKind
from storage_lib.catalog.table_name import TableName
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.support.catalog_homes import ALL, APART, SHARED, CatalogHome, catalog_home
from tests.support.faulty_file_io import SimulatedCrash

COLUMNS = pa.schema([("id", pa.int64()), ("item", pa.string()), ("day", pa.string())])
ROWS = pa.table({"id": [1, 2], "item": ["pen", "ink"], "day": ["a", "b"]})


@pytest.fixture(params=ALL)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home(request.param, request, tmp_path)


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home(request.param, request, tmp_path)


@pytest.fixture(params=APART)
def apart(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home(request.param, request, tmp_path)


def make(catalog: Catalog, name: str, **more: Any) -> DynamicTable:
    return catalog.create_table(name, COLUMNS, primary_key=["id", "day"], partition_by=["day"], **more)


def ids(table: DynamicTable) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def test_a_table_is_made_found_listed_and_dropped(home: CatalogHome) -> None:
    name = f"{home.database}.orders"
    catalog = home.open()
    make(catalog, name, options={"bucket": "2"}, comment="what was bought").append(ROWS)

    other = home.open()

    assert other.supports_managed_table()
    assert other.table_exists(name)
    assert other.list_tables(home.database) == [name]
    found = other.load_table(name)
    assert (ids(found), found.schema.bucket_count, found.schema.comment) == ([1, 2], 2, "what was bought")
    assert other.system_table(f"{name}$snapshots").num_rows == 1
    other.drop_table(name)
    assert not catalog.table_exists(name)
    assert catalog.list_tables(home.database) == []
    assert not home.files.exists(found.location)
    with pytest.raises(NotFoundError, match=r"table .*orders does not exist"):
        catalog.load_table(name)
    with pytest.raises(NotFoundError, match="does not exist"):
        catalog.drop_table(name)
    catalog.drop_table(name, if_exists=True)


def test_another_process_opens_a_table_by_its_address(shared: CatalogHome) -> None:
    table = make(shared.open(), f"{shared.database}.orders")
    table.append(ROWS)

    address = pickle.loads(pickle.dumps(table.address))  # noqa: S301  our own

    assert ids(load_table_at(address)) == [1, 2]


def test_a_table_is_made_once_and_may_be_there(home: CatalogHome) -> None:
    name = f"{home.database}.orders"
    make(home.open(), name).append(ROWS)

    with pytest.raises(AlreadyExistsError, match="already exists"):
        make(home.open(), name)
    assert ids(make(home.open(), name, if_not_exists=True)) == [1, 2]
    other = pa.schema([("id", pa.int64())])
    assert ids(home.open().create_table(name, other, if_not_exists=True)) == [1, 2]


def test_a_dropped_table_is_made_anew_and_empty(home: CatalogHome) -> None:
    name = f"{home.database}.orders"
    make(home.open(), name).append(ROWS)
    home.open().drop_table(name)

    assert ids(make(home.open(), name)) == []


def test_databases_are_made_listed_and_dropped(home: CatalogHome) -> None:
    catalog = home.open()
    catalog.create_database(home.database, {"comment": "all that is sold"})

    assert home.database in home.open().list_databases()
    assert home.open().database_properties(home.database)["comment"] == "all that is sold"
    with pytest.raises(AlreadyExistsError, match=f"database {home.database} already exists"):
        catalog.create_database(home.database)
    catalog.create_database(home.database, if_not_exists=True)
    catalog.alter_database(home.database, {"owner": "ann", "team": "sales"})
    catalog.alter_database(home.database, {"owner": "bob"}, remove=["team", "nothing"])
    changed = home.open().database_properties(home.database)
    assert changed.items() >= {"owner": "bob", "comment": "all that is sold"}.items()
    assert "team" not in changed
    with pytest.raises(InvalidInputError, match="location"):
        catalog.alter_database(home.database, {"location": "/elsewhere"})
    with pytest.raises(NotFoundError, match="does not exist"):
        catalog.alter_database(f"{home.database}_missing", {"a": "b"})
    make(catalog, f"{home.database}.orders")
    make(catalog, f"{home.database}.items")
    with pytest.raises(InvalidInputError, match=r"items, .*orders; drop them first, or drop it with cascade"):
        catalog.drop_database(home.database)
    catalog.drop_database(home.database, cascade=True)
    assert home.database not in home.open().list_databases()
    assert not home.open().database_exists(home.database)
    catalog.drop_database(home.database, if_exists=True)
    with pytest.raises(NotFoundError, match="does not exist"):
        catalog.drop_database(home.database)
    with pytest.raises(NotFoundError, match="does not exist"):
        catalog.database_properties(home.database)


def test_a_table_s_database_is_made_with_it(home: CatalogHome) -> None:
    make(home.open(), f"{home.database}.orders")

    assert home.open().database_exists(home.database)
    assert home.open().list_tables("nowhere") == []


def test_an_altered_table_is_altered_for_all(home: CatalogHome) -> None:
    name = f"{home.database}.orders"
    make(home.open(), name).append(ROWS)

    home.open().alter_table(name, [AddColumn("price", "INT")])

    assert home.open().load_table(name).to_arrow().column_names == ["id", "item", "day", "price"]
    with pytest.raises(NotFoundError):
        home.open().alter_table(f"{home.database}.nothing", [AddColumn("price", "INT")])


def test_a_renamed_table_keeps_its_rows_and_its_old_name_is_free(home: CatalogHome) -> None:
    old, new = f"{home.database}.orders", f"{home.database}.purchases"
    catalog = home.open()
    make(catalog, old).append(ROWS)

    renamed = catalog.rename_table(old, new)

    assert (renamed.name, ids(renamed)) == (new, [1, 2])
    renamed.append(ROWS.slice(0, 1).set_column(0, "id", pa.array([3], pa.int64())))
    assert home.open().list_tables(home.database) == [new]
    assert ids(make(home.open(), old)) == []
    assert ids(home.open().load_table(new)) == [1, 2, 3]
    with pytest.raises(AlreadyExistsError, match="already exists"):
        catalog.rename_table(old, new)
    with pytest.raises(NotFoundError):
        catalog.rename_table(f"{home.database}.nothing", f"{home.database}.something")


@pytest.mark.parametrize(
    "name", ["orders", "a.b.c", "shop.", "shop.or/ders", "../x.y", "shop.or ders", "shop.o'; DROP TABLE paimon_tables"]
)
def test_hostile_names_are_refused(home: CatalogHome, name: str) -> None:
    catalog = home.open()

    for act in (
        lambda: make(catalog, name),
        lambda: catalog.load_table(name),
        lambda: catalog.drop_table(name),
        lambda: catalog.rename_table(name, f"{home.database}.fine"),
    ):
        with pytest.raises(InvalidInputError, match="invalid table name"):
            act()
    for act in (lambda: catalog.create_database(name + "/.."), lambda: catalog.drop_database(name + "%")):
        with pytest.raises(InvalidInputError, match="invalid database name"):
            act()


def test_a_name_that_a_template_made_a_number_is_refused(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))

    with pytest.raises(InvalidInputError, match=r"invalid table name 2024\.1 of type float"):
        catalog.load_table(2024.1)  # type: ignore[arg-type]


def test_of_many_who_make_one_table_at_once_one_does(shared: CatalogHome) -> None:
    name = f"{shared.database}.orders"
    catalogs = [shared.open() for _ in range(4)]
    made, refused = racing([partial(make, each, name) for each in catalogs])

    assert len(made) == 1
    assert {type(error) for error in refused} == {AlreadyExistsError}
    assert shared.open().load_table(name).uuid == made[0].uuid
    made[0].append(ROWS)
    assert ids(shared.open().load_table(name)) == [1, 2]


def test_who_makes_and_who_drops_one_table_at_once_leave_all_of_it_or_nothing(shared: CatalogHome) -> None:
    name = f"{shared.database}.orders"
    for _ in range(3):
        make(shared.open(), name, if_not_exists=True)
        racing(
            [
                lambda: shared.open().drop_table(name, if_exists=True),
                lambda: make(shared.open(), name),
                lambda: shared.open().drop_table(name, if_exists=True),
            ]
        )
        catalog = shared.open()
        if catalog.table_exists(name):
            table = catalog.load_table(name)
            table.append(ROWS)
            assert ids(table) == [1, 2]


@pytest.mark.parametrize("act", ["create", "drop", "rename"])
@pytest.mark.parametrize("home", [each for each in ALL if "postgres" not in str(each)], indirect=True)
def test_whatever_step_a_process_dies_at_the_next_one_goes_on(home: CatalogHome, act: str) -> None:
    name, new_name = f"{home.database}.orders", f"{home.database}.purchases"
    acts: dict[str, Callable[[Catalog], object]] = {
        "create": lambda catalog: make(catalog, name),
        "drop": lambda catalog: catalog.drop_table(name),
        "rename": lambda catalog: catalog.rename_table(name, new_name),
    }
    for step in range(1, 100):
        catalog = home.open()
        if act == "create":
            catalog.drop_table(name, if_exists=True)
        elif act == "rename" and step > 1:
            catalog.rename_table(new_name, name)
        else:
            make(catalog, name, if_not_exists=True)
        fuse = Fuse(step)
        dying = home.open()
        fuse.into(dying)
        with suppress(SimulatedCrash):
            acts[act](dying)
        if not fuse.is_blown:
            assert step > 5
            break
        catalog = home.open()
        if act == "create":
            assert ids(make(catalog, name, if_not_exists=True)) == []
        elif act == "drop":
            catalog.drop_table(name, if_exists=True)
            assert ids(make(catalog, name)) == []
        else:
            with suppress(AlreadyExistsError, NotFoundError):
                catalog.rename_table(name, new_name)
            assert catalog.list_tables(home.database) == [new_name]
            assert ids(catalog.load_table(new_name)) == []


def test_a_drop_spares_the_table_that_was_made_anew_meanwhile(apart: CatalogHome) -> None:
    name = f"{apart.database}.orders"
    catalog = apart.open()
    make(catalog, name)
    entries = catalog._entries
    table_name = TableName.parse(name)

    entries.remove(table_name, lambda: False)
    assert apart.open().table_exists(name)
    entries.remove(table_name, lambda: True)
    assert not apart.open().table_exists(name)


def test_an_entry_whose_files_are_gone_is_dropped_and_made_anew(apart: CatalogHome) -> None:
    name = f"{apart.database}.orders"
    table = make(apart.open(), name)
    LocalFileIO().delete_tree(table.location)

    with pytest.raises(NotFoundError):
        apart.open().load_table(name)
    apart.open().drop_table(name)
    assert apart.open().list_tables(apart.database) == []
    LocalFileIO().delete_tree(make(apart.open(), name).location)
    make(apart.open(), name).append(ROWS)
    assert ids(apart.open().load_table(name)) == [1, 2]


def test_rows_without_an_entry_are_not_overwritten(apart: CatalogHome) -> None:
    name = f"{apart.database}.orders"
    make(open_catalog(apart.warehouse, {"log.system": "none"}), name).append(ROWS)

    with pytest.raises(AlreadyExistsError, match=r"without an entry in this catalog.*--register"):
        make(apart.open(), name)
    assert ids(open_catalog(apart.warehouse).load_table(name)) == [1, 2]


@pytest.mark.parametrize("act", ["create", "drop"])
@pytest.mark.parametrize("home", ["warehouse", "sqlite"], indirect=True)
def test_whatever_step_a_process_dies_at_a_look_for_orphans_finds_and_mends_it(home: CatalogHome, act: str) -> None:
    name = f"{home.database}.orders"
    for step in range(1, 100):
        catalog = home.open()
        catalog.drop_table(name, if_exists=True)
        if act == "drop":
            make(catalog, name)
        fuse = Fuse(step)
        dying = home.open()
        fuse.into(dying)
        with suppress(SimulatedCrash):
            make(dying, name) if act == "create" else dying.drop_table(name)
        if not fuse.is_blown:
            assert step > 5
            return
        for each in list(catalog.orphans.find()):
            assert str(each.name) == name
            assert catalog.orphans.mend(each)
        assert list(catalog.orphans.find()) == []
        there = catalog.table_exists(name)
        assert home.files.exists(f"{home.warehouse}/{home.database}.db/orders") is there
        if there:
            assert ids(catalog.load_table(name)) == []


def test_a_table_with_rows_and_without_an_entry_is_registered_not_deleted(apart: CatalogHome) -> None:
    name = f"{apart.database}.orders"
    make(open_catalog(apart.warehouse, {"log.system": "none"}), name).append(ROWS)
    catalog = apart.open()

    [found] = of_home(catalog, apart)

    assert (str(found.name), found.kind) == (name, OrphanKind.TABLE_WITHOUT_ENTRY)
    assert not catalog.orphans.mend(found)
    assert catalog.orphans.register(found)
    assert not catalog.orphans.register(found)
    assert ids(apart.open().load_table(name)) == [1, 2]
    assert of_home(catalog, apart) == []


def of_home(catalog: Catalog, home: CatalogHome) -> list[Orphan]:
    """Return the orphans of this test's database: all tests share the metastore."""
    return [each for each in catalog.orphans.find() if each.name.database == home.database]


def racing(acts: list[Callable[[], Any]]) -> tuple[list[Any], list[StorageError]]:
    """Start all functions together; return their results and their errors."""
    barrier = threading.Barrier(len(acts))
    returned: list[Any] = []
    raised: list[StorageError] = []

    def run(act: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            returned.append(act())
        except StorageError as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return returned, raised


class Fuse:
    """Crashes a process before its ``at``-th step, counted over calls of its storage and its entries."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.is_blown = False

    def burn(self, what: str) -> None:
        self._left -= 1
        if self._left <= 0:
            self.is_blown = True
            raise SimulatedCrash(what)

    def into(self, catalog: Catalog) -> None:
        for owner, name in (
            (catalog, "_entries"),
            (catalog._life, "_entries"),
            (catalog._life, "_file_io"),
        ):
            setattr(owner, name, _Burning(getattr(owner, name), self))


class _Burning:
    """Delegates calls until the fuse blows."""

    def __init__(self, delegate: Any, fuse: Fuse) -> None:
        self._delegate = delegate
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._delegate, name)
        if not callable(found) or name == "lease":
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self._fuse.burn(name)
            return found(*arguments, **named)

        return call
