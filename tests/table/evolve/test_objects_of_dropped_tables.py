"""Nothing that an object of a dropped table does changes a file of the table that has its name now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from storage_lib import AddColumn, Catalog, DynamicTable, StorageError, open_catalog

COLUMNS = {"id": "INT", "p": "STRING", "v": "INT"}
ROW = {"id": 1, "p": "a", "v": 5}
VERBS: dict[str, Callable[[DynamicTable], object]] = {
    "alter": lambda table: table.alter(AddColumn("w", "INT")),
    "append": lambda table: table.append([ROW]),
    "compact": lambda table: table.compact(full=True),
    "delete": lambda table: table.delete("id = 1"),
    "insert": lambda table: table.insert([{**ROW, "id": 7}]),
    "merge": lambda table: table.merge([ROW]),
    "overwrite": lambda table: table.overwrite([ROW]),
    "refresh": lambda table: table.refresh(),
    "rewrite": lambda table: table.rewrite(options={"bucket": "2"}),
    "rollback_to": lambda table: table.rollback_to(tag="kept"),
    "update": lambda table: table.update("id = 1", {"v": 6}),
    "upsert": lambda table: table.upsert([{"id": 1, "p": "a"}], partial=True),
    "tags.create": lambda table: table.tags.create("x"),
    "tags.delete": lambda table: table.tags.delete("kept"),
    "tags.expire": lambda table: table.tags.expire(),
    "branches.create": lambda table: table.branches.create("x", tag="kept"),
    "branches.delete": lambda table: table.branches.delete("dev"),
    "branches.expire": lambda table: table.branches.expire(),
    "branches.fast_forward": lambda table: table.branches.fast_forward("dev"),
    "branches.open": lambda table: table.branches.open("dev").append([ROW]),
    "consumers.advance": lambda table: table.consumers.advance("reader", 2),
    "consumers.create": lambda table: table.consumers.create("another"),
    "consumers.delete": lambda table: table.consumers.delete("reader"),
    "consumers.expire": lambda table: table.consumers.expire(older_than=timedelta(0)),
    "maintenance.analyze": lambda table: table.maintenance.analyze(),
    "maintenance.delete_rejected": lambda table: table.maintenance.delete_rejected(),
    "maintenance.drop_partitions": lambda table: table.maintenance.drop_partitions([{"p": "a"}]),
    "maintenance.expire_snapshots": lambda table: table.maintenance.expire_snapshots(retain_last=1),
    "maintenance.publish_iceberg": lambda table: table.maintenance.publish_iceberg(),
    "maintenance.remove_orphan_files": lambda table: table.maintenance.remove_orphan_files(older_than=timedelta(0)),
    "maintenance.tier_log": lambda table: table.maintenance.tier_log(),
}
READS = {
    *("changes", "close", "count", "describe", "lookup", "new_read", "read", "stream", "to_arrow", "to_duckdb"),
    *("to_pandas", "to_polars", "branches.check_unchanged", "branches.list", "consumers.list"),
    *("tags.exists", "tags.list", "tags.load"),
}
PARTS = {
    *("new_write", "tags.keeping"),
    *(f"maintenance.{name}_compaction" for name in ("abort", "commit", "plan", "run")),
    *("maintenance.compact_planned", "maintenance.compact_written"),
}
"""What commits made of several steps consist of; the verbs are made of them."""


def made(catalog: Catalog, *versions: int) -> DynamicTable:
    """Create the table with a snapshot for each version of a row, a tag, a branch and a consumer."""
    options = {"bucket": "1", "log.system": "none", "metadata.iceberg.storage": "hadoop-catalog"}
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options=options)
    for version in versions:
        table.append([{**ROW, "v": version}])
    table.tags.create("kept", snapshot_id=1)
    table.branches.create("dev", tag="kept")
    table.consumers.create("reader", 1)
    return table


def contents(warehouse: Path) -> dict[str, bytes]:
    """Return all files, except those of the leases of writers, which are released again."""
    files = [path for path in warehouse.rglob("*") if path.is_file() and path.parent.name != "lease"]
    return {str(path.relative_to(warehouse)): path.read_bytes() for path in files}


@pytest.mark.parametrize("has_read", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_no_file_of_the_new_table_changes(verb: str, tmp_path: Path, *, has_read: bool) -> None:
    catalog = open_catalog(tmp_path)
    table = made(catalog, 7, 8)
    old = table if has_read else catalog.load_table("shop.t")
    catalog.drop_table("shop.t")
    made(catalog, 5, 9).branches.open("dev").append([{**ROW, "id": 3}])
    before = contents(tmp_path)

    try:
        VERBS[verb](old)
    except StorageError as error:
        assert not error.committed  # noqa: PT017  some have nothing to do

    assert contents(tmp_path) == before


def test_each_method_is_a_verb_or_a_read(tmp_path: Path) -> None:
    table = made(open_catalog(tmp_path), 5)
    namespaces = ("tags", "branches", "consumers", "maintenance")
    own = {name for name in dir(DynamicTable) if not name.startswith("_")}
    properties = {name for name in own if isinstance(getattr(DynamicTable, name), property)}
    there = own - properties - {*namespaces, "inspect"}
    for namespace in namespaces:
        of = type(getattr(table, namespace))
        there |= {f"{namespace}.{name}" for name in dir(of) if not name.startswith("_")}

    assert there == {*VERBS, *READS, *PARTS}
