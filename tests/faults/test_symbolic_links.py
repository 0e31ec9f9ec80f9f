"""Deletion never leaves the table: symbolic links are deleted as links, or kept, and their targets are not touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from storage_lib import CorruptFileError, DynamicTable, InvalidInputError, NotFoundError, open_catalog
from storage_lib.catalog.catalog import Catalog
from storage_lib.file_store.cleanup.references import FileReferences
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.support.orders_table import NAME, content, orders, rows

OPTIONS = {"log.system": "none", "bucket": "1"}
DIRECTORIES = ("bucket-9", "dt=a/bucket-9", "manifest", "index", "statistics", "snapshot", "lease", "branch", "tag")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Create an unrelated directory whose files have names that a table's clean-up looks for."""
    place = tmp_path / "victim"
    for name in (
        "precious.txt",
        "manifest-1",
        "index-1",
        "stat-1",
        ".x.tmp",
        "waiting-x",
        "branch-old/snapshot/snapshot-1",
        "bucket-0/data-1.parquet",
        "schema/x",
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("precious")
    return place


def every_path(place: Path) -> set[str]:
    return {str(each) for each in place.rglob("*")}


def table_in(warehouse: Path) -> tuple[Catalog, DynamicTable]:
    catalog = open_catalog(str(warehouse))
    table = orders(catalog, **OPTIONS)
    for price in (10, 11, 12):
        table.append(rows(f"+U a 1 {price}", "+I b 2 20"))
    return catalog, table


@pytest.mark.parametrize("link", DIRECTORIES)
def test_a_clean_up_deletes_nothing_behind_a_link_in_the_table(link: str, victim: Path, tmp_path: Path) -> None:
    _, table = table_in(tmp_path / "lake")
    place = Path(table.location) / link
    if not place.exists():
        place.symlink_to(victim)
    else:
        (place / "gone").symlink_to(victim)
    before = every_path(victim)

    table.maintenance.remove_orphan_files(older_than=timedelta(0))
    table.maintenance.expire_snapshots(retain_last=1)
    table.compact()

    assert every_path(victim) == before
    assert content(table) == {"a 1 12", "b 2 20"}


@pytest.mark.parametrize("link", DIRECTORIES)
@pytest.mark.parametrize("kind", ["directory", "dangling", "circle", "file"])
def test_a_drop_ends_and_deletes_nothing_behind_a_link(link: str, kind: str, victim: Path, tmp_path: Path) -> None:
    catalog, table = table_in(tmp_path / "lake")
    place = Path(table.location) / link
    if place.exists():
        place = place / "link"
    target = {"directory": victim, "dangling": tmp_path / "nowhere", "circle": place, "file": victim / "precious.txt"}
    place.symlink_to(target[kind])
    before = every_path(victim)

    catalog.drop_table(NAME)

    assert every_path(victim) == before
    assert not os.path.lexists(table.location)
    assert catalog.list_tables() == []


def test_a_link_in_the_place_of_an_orphan_goes_without_what_it_leads_to(victim: Path, tmp_path: Path) -> None:
    _, table = table_in(tmp_path / "lake")
    link = Path(table.location) / "dt=a" / "bucket-0" / "data-lost.parquet"
    link.symlink_to(victim / "precious.txt")

    removed = table.maintenance.remove_orphan_files(older_than=timedelta(0))

    assert removed.paths == (str(link),)
    assert not link.is_symlink()
    assert (victim / "precious.txt").exists()


def test_a_bucket_exchanged_for_a_link_after_listing_leads_nowhere(
    victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, table = table_in(tmp_path / "lake")
    bucket = Path(table.location) / "dt=a" / "bucket-0"
    (bucket / "precious.txt").write_text("an orphan of the same name")
    asked = FileReferences.of_table

    def exchanged(references: FileReferences) -> object:
        found = asked(references)
        bucket.rename(tmp_path / "aside")
        bucket.symlink_to(victim)
        return found

    monkeypatch.setattr(FileReferences, "of_table", exchanged)
    before = every_path(victim)

    table.maintenance.remove_orphan_files(older_than=timedelta(0))

    assert every_path(victim) == before


def test_a_branch_behind_a_link_is_deleted_as_a_link(victim: Path, tmp_path: Path) -> None:
    _, table = table_in(tmp_path / "lake")
    table.branches.create("dev")
    branch = Path(table.location) / "branch" / "branch-dev"
    branch.rename(tmp_path / "elsewhere")
    branch.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "precious.txt").write_text("precious")

    table.branches.delete("dev")

    assert not table.branches.list()
    assert not branch.is_symlink()
    assert (tmp_path / "elsewhere" / "precious.txt").exists()
    assert content(table) == {"a 1 12", "b 2 20"}


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_deletion_behind_a_link_is_refused_and_keeps_the_files_of_what_stays(kind: str, tmp_path: Path) -> None:
    _, table = table_in(tmp_path / "lake")
    made = table.tags if kind == "tag" else table.branches
    made.create("old", snapshot_id=1)
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    place = Path(table.location) / kind
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(InvalidInputError, match=f"{kind} 'old' is not deleted: .* symbolic link") as refused:
        made.delete("old")

    assert refused.value.committed is False
    before = table.to_arrow(tag="old") if kind == "tag" else table.branches.open("old").to_arrow()
    assert before.num_rows == 2


def test_a_warehouse_behind_a_link_is_a_warehouse(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "lake").symlink_to(tmp_path / "disk")
    catalog, table = table_in(tmp_path / "lake")
    table.compact()
    left = Path(table.location) / "dt=a" / "bucket-0" / "data-lost.parquet"
    left.write_text("an orphan")

    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == (str(left),)
    assert table.maintenance.expire_snapshots(retain_last=1).data_file_count > 0
    assert content(table) == {"a 1 12", "b 2 20"}
    catalog.drop_table(NAME)
    assert list((tmp_path / "disk" / "shop.db").iterdir()) == []


@pytest.mark.parametrize("what", ["database", "table"])
def test_a_database_or_table_on_another_disk_is_found_and_dropped(what: str, tmp_path: Path) -> None:
    catalog, table = table_in(tmp_path / "lake")
    moved = {"database": Path(table.location).parent, "table": Path(table.location)}[what]
    moved.rename(tmp_path / "disk")
    moved.symlink_to(tmp_path / "disk")

    assert catalog.list_tables() == [NAME]
    assert content(catalog.load_table(NAME)) == {"a 1 12", "b 2 20"}
    catalog.drop_table(NAME)

    assert catalog.list_tables() == []
    assert not os.path.lexists(table.location)
    assert not list((tmp_path / "disk").rglob("*.parquet"))


def test_a_data_file_moved_to_another_disk_is_read_and_deleted_as_a_link(tmp_path: Path) -> None:
    """Reads follow links, with which operators move cold files. The targets belong to the operators."""
    _, table = table_in(tmp_path / "lake")
    data = next((Path(table.location) / "dt=b").rglob("*.parquet"))
    data.rename(tmp_path / "cold.parquet")
    data.symlink_to(tmp_path / "cold.parquet")

    assert content(table) == {"a 1 12", "b 2 20"}
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)

    assert content(table) == {"a 1 12", "b 2 20"}
    assert (tmp_path / "cold.parquet").exists()


def test_a_dangling_link_in_the_place_of_a_data_file_is_named(tmp_path: Path) -> None:
    _, table = table_in(tmp_path / "lake")
    data = next((Path(table.location) / "dt=b").rglob("*.parquet"))
    data.unlink()
    data.symlink_to(tmp_path / "gone.parquet")

    with pytest.raises(CorruptFileError, match=f"{data.name}.*gone.parquet"):
        table.to_arrow()


@pytest.mark.parametrize("spelled", ["../victim/precious.txt", "dt=a/../../victim/precious.txt", ".."])
def test_a_path_that_climbs_out_of_the_table_is_not_deleted(spelled: str, victim: Path, tmp_path: Path) -> None:
    """Names in a manifest are untrusted input."""
    root = tmp_path / "root"
    (root / "dt=a").mkdir(parents=True)
    before = every_path(tmp_path)

    LocalFileIO().delete(f"{root}/{spelled}", below=str(root))
    LocalFileIO().delete_tree(f"{root}/{spelled}", below=str(root))

    assert every_path(tmp_path) == before


@pytest.mark.parametrize("delete", [LocalFileIO.delete, LocalFileIO.delete_tree])
def test_what_may_not_be_deleted_is_an_error_of_ours(
    delete: Callable[[LocalFileIO, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(InvalidInputError, match=f"{tmp_path}/file"):
        delete(LocalFileIO(), f"{tmp_path}/file")


def test_a_database_behind_a_link_is_dropped_as_a_link(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path / "lake"))
    catalog.create_database("shop")
    place = tmp_path / "lake" / "shop.db"
    place.rename(tmp_path / "disk")
    place.symlink_to(tmp_path / "disk")

    catalog.drop_database("shop")

    assert not os.path.lexists(place)
    with pytest.raises(NotFoundError):
        catalog.drop_database("shop")
