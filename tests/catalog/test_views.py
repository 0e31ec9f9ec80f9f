"""Views in each kind of catalog: created, replaced, renamed and dropped by several processes, some of which crash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from storage_lib import (
    AlreadyExistsError,
    Catalog,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    InvalidInputError,
    NotFoundError,
    open_catalog,
)
from storage_lib.catalog.views.catalog_views import CatalogViews
from storage_lib.catalog.views.view import View
from storage_lib.catalog.warehouse.memory_catalog import MemoryCatalog
from storage_lib.io.environment import system_environment
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.catalog_homes import ALL, CatalogHome, catalog_home
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash


@pytest.fixture(params=ALL)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home(request.param, request, tmp_path)


def view(name: str, query: str = "SELECT 1 AS x") -> View:
    return View(name=name, query=query, columns=("a",), comment="one", column_comments={"a": "first"})


def test_a_view_is_stored_found_listed_replaced_renamed_and_dropped(home: CatalogHome) -> None:
    shop, catalog = home.database, home.open()
    catalog.views.create(view(f"{shop}.v"))

    other = home.open()
    assert other.views.load(f"{shop}.v") == view(f"{shop}.v")
    assert other.views.names(shop) == [f"{shop}.v"]
    assert f"{shop}.v" in other.views.names()
    assert other.list_tables(shop) == []
    assert not other.table_exists(f"{shop}.v")

    with pytest.raises(AlreadyExistsError, match="already exists; drop it, or replace it"):
        other.views.create(view(f"{shop}.v", "SELECT 2"))
    other.views.create(view(f"{shop}.v", "SELECT 2"), or_replace=True)
    assert catalog.views.load(f"{shop}.v").query == "SELECT 2"

    other.views.rename(f"{shop}.v", f"{shop}.w")
    assert catalog.views.find(f"{shop}.v") is None
    assert catalog.views.load(f"{shop}.w") == view(f"{shop}.w", "SELECT 2")

    other.views.drop(f"{shop}.w")
    other.views.drop(f"{shop}.w", if_exists=True)
    with pytest.raises(NotFoundError, match="existing views of its database: none"):
        other.views.drop(f"{shop}.w")
    assert catalog.views.names(shop) == []


def test_a_name_is_that_of_a_table_or_of_a_view(home: CatalogHome) -> None:
    shop, catalog = home.database, home.open()
    catalog.create_table(f"{shop}.t", "id BIGINT")
    catalog.views.create(view(f"{shop}.v"))

    with pytest.raises(AlreadyExistsError, match="is a table"):
        catalog.views.create(view(f"{shop}.t"), or_replace=True)
    with pytest.raises(AlreadyExistsError, match="is a view"):
        catalog.create_table(f"{shop}.v", "id BIGINT", if_not_exists=True)
    with pytest.raises(AlreadyExistsError, match="is a table"):
        catalog.views.rename(f"{shop}.v", f"{shop}.t")
    with pytest.raises(InvalidInputError, match="is a view, which only SQL reads"):
        catalog.load_table(f"{shop}.v")

    assert catalog.list_tables(shop) == [f"{shop}.t"]
    assert catalog.views.names(shop) == [f"{shop}.v"]


def test_a_table_is_not_renamed_to_the_name_of_a_view(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    catalog.create_table("shop.t", "id BIGINT")
    catalog.views.create(view("shop.v"))

    with pytest.raises(AlreadyExistsError, match="is a view"):
        catalog.rename_table("shop.t", "shop.v")

    assert catalog.list_tables() == ["shop.t"]


def test_views_go_with_their_database(home: CatalogHome) -> None:
    shop, catalog = home.database, home.open()
    catalog.views.create(view(f"{shop}.v"))

    with pytest.raises(InvalidInputError, match=f"still contains views: {shop}.v; drop them first"):
        catalog.drop_database(shop)
    catalog.drop_database(shop, cascade=True)

    assert not catalog.database_exists(shop)
    assert catalog.views.names(shop) == []


def test_a_damaged_view_and_one_of_a_newer_version_are_errors_that_name_the_file(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path))
    catalog.views.create(view("shop.v"))
    stored = tmp_path / "shop.db" / ".views" / "v" / "view-1"

    stored.write_text(stored.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(CorruptFileError, match=r"view-1 does not hold the view shop\.v: .*version 2 is not known"):
        catalog.views.load("shop.v")
    stored.write_bytes(b"{")
    with pytest.raises(CorruptFileError, match=r"view-1 does not hold the view shop\.v"):
        catalog.views.load("shop.v")


def over(files: FileIO) -> Catalog:
    return MemoryCatalog(environment=system_environment(files))


ACTS: dict[str, Callable[[Catalog], object]] = {
    "create": lambda catalog: catalog.views.create(view("shop.v", "SELECT 'created'")),
    "replace": lambda catalog: catalog.views.create(view("shop.v", "SELECT 'replaced'"), or_replace=True),
    "drop": lambda catalog: catalog.views.drop("shop.v"),
    "rename": lambda catalog: catalog.views.rename("shop.v", "shop.w"),
    "create table": lambda catalog: catalog.create_table("shop.v", "id BIGINT"),
}
BEFORE = {"nothing": (), "a view": ("create",), "a replaced view": ("create", "replace"), "a table": ("create table",)}


def prepared(before: str) -> MemoryFileIO:
    files = MemoryFileIO()
    for each in BEFORE[before]:
        ACTS[each](over(files))
    return files


def state(files: MemoryFileIO) -> tuple[list[str], list[str | None]]:
    """Return the tables, and the queries of the views."""
    views = over(files).views
    return over(files).list_tables(), [None if found is None else found.query for found in map(views.find, NAMES)]


NAMES = ("shop.v", "shop.w")


def succeeds(act: str, files: FileIO) -> bool | None:
    """Run a statement; return None if it was refused because of another one, and has to be repeated."""
    try:
        ACTS[act](over(files))
    except CommitConflictError:
        return None
    except (AlreadyExistsError, NotFoundError):
        return False
    return True


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kind", [FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER])
def test_a_crash_at_any_request_is_repaired_by_the_next_statement(act: str, before: str, kind: FaultKind) -> None:
    whole = prepared(before)
    was = state(whole)
    counted = FaultyFileIO(whole)
    succeeds(act, counted)
    becomes = state(whole)

    for at in range(1, len(counted.calls) + 1):
        files = prepared(before)
        with suppress(SimulatedCrash):
            succeeds(act, FaultyFileIO(files, Fault(kind, at=at)))
        left = state(files)

        # A rename creates the new name, then drops the old one.
        halfway = ([], [was[1][0], becomes[1][1]]) if act == "rename" else was
        # An interrupted drop of the files of a replaced view may leave an older one, and a crashed creation of a table
        # its files, which the next one takes over.
        assert left in (was, becomes, halfway), at
        over(files).views.drop("shop.w", if_exists=True)
        if not left[0]:
            over(files).views.create(view("shop.v", "SELECT 'next'"), or_replace=True)
            assert state(files) == ([], ["SELECT 'next'", None])


class Suspended(FaultyFileIO):
    """Files of a process that is suspended before one of its requests, while ``meanwhile`` runs."""

    def __init__(self, files: FileIO, at: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(files)
        self._at = at
        self._meanwhile = meanwhile

    def _struck(self, operation: str, path: str) -> FaultKind | None:
        struck = super()._struck(operation, path)
        if len(self.calls) == self._at:
            self._meanwhile()
        return struck


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("second", ACTS)
@pytest.mark.parametrize("first", ACTS)
def test_two_statements_at_once_do_what_one_after_the_other_does(first: str, second: str, before: str) -> None:
    one_by_one = []
    for order in ((first, second), (second, first)):
        files = prepared(before)
        answers = [succeeds(act, files) for act in order]
        one_by_one.append(((answers if order[0] == first else answers[::-1]), state(files)))
        if first == second:
            one_by_one.append((answers[::-1], state(files)))
    alone = prepared(before)
    one_by_one.append(([None, succeeds(second, alone)], state(alone)))
    counted = FaultyFileIO(prepared(before))
    succeeds(first, counted)

    for at in range(1, len(counted.calls) + 1):
        files = prepared(before)
        meanwhile: list[bool | None] = []

        def other(files: MemoryFileIO = files, meanwhile: list[bool | None] = meanwhile) -> None:
            meanwhile.append(succeeds(second, files))

        answer = succeeds(first, Suspended(files, at, other))

        assert ([answer, *meanwhile], state(files)) in one_by_one, at


def test_a_process_that_was_suspended_while_its_number_was_deleted_does_not_know_what_happened() -> None:
    files = MemoryFileIO()
    over(files).views.create(view("shop.v"))

    def replaced_often() -> None:
        for _ in range(150):
            over(files).views.create(view("shop.v", "SELECT 'newest'"), or_replace=True)

    counted = FaultyFileIO(prepared("a view"))
    succeeds("replace", counted)
    at = 1 + [operation for operation, _ in counted.calls].index("create_if_absent")
    with pytest.raises(CommitOutcomeUnknownError):
        ACTS["replace"](over(Suspended(files, at, replaced_often)))

    assert over(files).views.load("shop.v").query == "SELECT 'newest'"
    assert len(files.list_directory("/memory/shop.db/.views/v")) <= 102


def test_a_view_that_was_undone_is_an_error_even_if_the_table_is_gone_by_then() -> None:
    catalog = over(MemoryFileIO())
    looks = iter([False, True, False])
    views = CatalogViews(catalog._environment.file_io, catalog._entries, lambda _: next(looks))

    with pytest.raises(AlreadyExistsError, match="is a table"):
        views.create(view("shop.v"))

    assert catalog.views.names() == []
