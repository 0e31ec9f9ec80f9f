"""A table's metadata is readable as system tables under Paimon's names."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import cast

import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    AlterType,
    DropColumn,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    NotFoundError,
    RenameColumn,
)
from storage_lib.table.inspect.system_table_schemas import AUDIT_LOG, SYSTEM_TABLES
from storage_lib.table.inspect.table_health import TableHealth
from tests.support.fake_environment import STARTED_MILLIS, FakeClock, fake_environment
from tests.support.orders_table import NAME, orders, reopened, rows


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog(environment=fake_environment())


@pytest.fixture
def lived(catalog: MemoryCatalog) -> DynamicTable:
    table = orders(catalog, bucket="2")
    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.append(rows("+U a 1 11", "-D b 2 20"))
    table.tags.create("first", 1, time_retained="1 h")
    table.branches.create("dev")
    table.consumers.create("etl", 2)
    return table


def test_every_system_table_has_its_columns_even_of_an_empty_table(catalog: MemoryCatalog) -> None:
    table = orders(catalog)
    for name, schema in SYSTEM_TABLES.items():
        assert table.inspect.system_table(name).schema == schema
    assert table.inspect.system_table(AUDIT_LOG).schema.names == ["rowkind", "dt", "id", "price"]


def test_inspect_has_the_rows_and_columns_of_the_system_tables(lived: DynamicTable) -> None:
    inspect = lived.inspect
    assert inspect.snapshots() == inspect.system_table("snapshots")
    assert inspect.partitions() == inspect.system_table("partitions")
    assert inspect.files() == inspect.system_table("files")
    assert inspect.files(1).schema == inspect.files().schema
    assert inspect.files(1)["record_count"].to_pylist() != inspect.files()["record_count"].to_pylist()
    texts = [f"dt={row['dt']}" for row in inspect.partition_values().to_pylist()]
    assert texts == inspect.partitions()["partition"].to_pylist()


def test_the_history_is_shown(lived: DynamicTable) -> None:
    snapshots = lived.inspect.system_table("snapshots").to_pylist()
    assert [(row["snapshot_id"], row["commit_kind"], row["delta_record_count"]) for row in snapshots] == [
        (1, "APPEND", 2),
        (2, "APPEND", 2),
    ]
    assert snapshots[0]["commit_time"].timestamp() * 1000 == STARTED_MILLIS
    (tag,) = lived.inspect.system_table("tags").to_pylist()
    assert (tag["tag_name"], tag["snapshot_id"], tag["record_count"], tag["time_retained"]) == (
        "first",
        1,
        2,
        "PT3600S",
    )
    assert lived.inspect.system_table("branches")["branch_name"].to_pylist() == ["dev"]
    assert lived.inspect.system_table("consumers").to_pylist() == [{"consumer_id": "etl", "next_snapshot_id": 2}]
    (schema,) = lived.inspect.system_table("schemas").to_pylist()
    assert schema["schema_id"] == 0
    assert schema["primary_keys"] == '["dt", "id"]'
    options = dict(zip(*lived.inspect.system_table("options").to_pydict().values(), strict=True))
    assert options["bucket"] == "2"


def test_the_keys_of_files_are_shown_under_a_newer_schema(lived: DynamicTable) -> None:
    before = lived.inspect.system_table("files")["min_key"].to_pylist()

    altered = lived.alter(AddColumn("note", "STRING"))

    assert altered.inspect.system_table("files")["min_key"].to_pylist() == before
    assert None not in before


def test_the_files_are_shown(lived: DynamicTable) -> None:
    files = lived.inspect.system_table("files").to_pylist()
    assert len(files) == 4
    for file in files:
        assert lived.environment.file_io.exists(file["file_path"])
        assert file["file_format"] == "parquet"
        assert file["min_key"] == f"[{1 if file['partition'] == 'dt=a' else 2}]"
    old, new = (file for file in files if file["partition"] == "dt=a")
    assert (old["min_value_stats"], new["max_value_stats"]) == ("{dt=a, id=1, price=10}", "{dt=a, id=1, price=11}")
    assert new["null_value_counts"] == "{dt=0, id=0, price=0}"
    partitions = lived.inspect.system_table("partitions").to_pylist()
    assert [(row["partition"], row["record_count"], row["file_count"]) for row in partitions] == [
        ("dt=a", 2, 2),
        ("dt=b", 2, 2),
    ]
    buckets = lived.inspect.system_table("buckets").to_pylist()
    assert sum(row["record_count"] for row in buckets) == 4
    manifests = lived.inspect.system_table("manifests").to_pylist()
    assert sum(row["num_added_files"] for row in manifests) == 4
    assert (manifests[0]["min_partition_stats"], manifests[0]["max_partition_stats"]) == ("{dt=a}", "{dt=b}")


def test_bounds_of_files_that_are_older_than_the_schema_go_by_the_present_columns() -> None:
    # Given: files with a decimal that was widened later, a dropped column, and a new column of the same name.
    table = MemoryCatalog({"log.system": "none"}, environment=fake_environment()).create_table(
        "shop.altered", {"id": "INT", "price": "DECIMAL(5, 2)", "gone": "STRING", "kept": "INT"}, primary_key=["id"]
    )
    row = {"id": 1, "price": Decimal("1.50"), "gone": "text", "kept": 7}
    table.append(pa.Table.from_pylist([row], schema=table.arrow_schema))
    table = table.alter(
        AlterType("price", "DECIMAL(38, 2)"), DropColumn("gone"), RenameColumn("kept", "gone"), AddColumn("new", "INT")
    )

    (file,) = table.inspect.system_table("files").to_pylist()

    assert file["min_value_stats"] == file["max_value_stats"] == "{id=1, price=1.50, gone=7, new=null}"
    assert file["null_value_counts"] == "{id=0, price=0, gone=0, new=1}"


def test_the_audit_log_tells_every_change_that_can_still_be_told(lived: DynamicTable) -> None:
    def told() -> list[str]:
        return [
            " ".join(str(value) for value in row.values())
            for row in lived.inspect.system_table("audit_log").to_pylist()
        ]

    assert sorted(told()) == ["+I a 1 10", "+I b 2 20", "+U a 1 11", "-D b 2 20"]
    lived.consumers.delete("etl")
    lived.append(rows("+I c 3 30"))
    lived.maintenance.expire_snapshots(retain_last=2)
    assert sorted(told()) == ["+I a 1 11", "+I c 3 30"]


def test_a_catalog_knows_system_tables_and_branches_by_name(catalog: MemoryCatalog, lived: DynamicTable) -> None:
    assert catalog.system_table(f"{NAME}$snapshots") == lived.inspect.system_table("snapshots")
    branch = catalog.load_table(f"{NAME}$branch_dev")
    branch.append(rows("+I d 4 40"))
    assert catalog.system_table(f"{NAME}$branch_dev$snapshots").num_rows == 2
    assert lived.inspect.system_table("snapshots").num_rows == 2
    assert catalog.load_table(f"{NAME}$branch_dev").to_arrow().num_rows == 2
    assert catalog.list_tables() == [NAME]


def test_names_that_are_none_are_refused(catalog: MemoryCatalog, lived: DynamicTable) -> None:
    with pytest.raises(NotFoundError, match="no system table 'nothing'; it has audit_log, branches"):
        lived.inspect.system_table("nothing")
    with pytest.raises(InvalidInputError, match="can only be read"):
        catalog.load_table(f"{NAME}$files")
    with pytest.raises(InvalidInputError, match="not the name of a system table"):
        catalog.system_table(NAME)
    with pytest.raises(NotFoundError, match="no branch 'x'"):
        catalog.load_table(f"{NAME}$branch_x")
    for name in (f"{NAME}$", f"{NAME}$a$b", f"{NAME}$branch_x$a$b"):
        with pytest.raises(InvalidInputError, match="invalid table name"):
            catalog.load_table(name)
    for act in (catalog.drop_table, lambda name: orders_named(catalog, name)):
        with pytest.raises(InvalidInputError, match="name the table itself"):
            act(f"{NAME}$branch_dev")


def orders_named(catalog: MemoryCatalog, name: str) -> DynamicTable:
    return catalog.create_table(name, rows("+I a 1 1").schema, primary_key=["id"])


def test_commits_are_listed_with_their_partitions_from_a_snapshot_on() -> None:
    table = orders(None, **{"log.system": "none", "write-only": "true"})
    table.append(rows("+I b 1 1", "+I a 1 1"))
    table.append(rows("+I a 2 2"))
    table.compact()

    def listed(after: int, limit: int = 10) -> list[tuple[int, str, int, list[object]]]:
        commits = table.inspect.commits(after=after, limit=limit)
        return [
            (each.snapshot_id, each.kind, each.delta_row_count, [value["dt"] for value in each.partitions])
            for each in commits
        ]

    assert listed(0, limit=2) == [(1, "APPEND", 2, ["a", "b"]), (2, "APPEND", 1, ["a"])]
    assert [each[:3] for each in listed(2)] == [(3, "COMPACT", 0)]
    assert listed(3) == []
    table.maintenance.expire_snapshots(retain_last=1)
    assert [each[0] for each in listed(0)] == [3]


def test_a_tables_health_is_told_at_a_glance() -> None:
    table = orders(None, **{"log.system": "none", "write-only": "true", "bucket": "1"})
    assert table.inspect.health() == TableHealth()
    table.append(rows("+I b 1 1", "+I a 1 1"))
    table.append(rows("+U a 1 2"))
    grown = table.inspect.health()
    assert (grown.snapshot_id, grown.commit_kind, grown.file_count, grown.row_count) == (2, "APPEND", 3, 3)
    assert (grown.partition_count, grown.bucket_count, grown.runs_max) == (2, 2, 2)
    assert (grown.compaction_millis, grown.change_millis) == (None, grown.commit_millis)
    assert grown.size_bytes == sum(table.inspect.files()["file_size_in_bytes"].to_pylist())

    clock = cast("FakeClock", table.environment.clock)
    clock.sleep(60)
    table.compact()
    clock.sleep(60)
    table.maintenance.analyze()
    cared = table.inspect.health()
    assert (cared.commit_kind, cared.file_count, cared.runs_max) == ("ANALYZE", 2, 1)
    assert cared.change_millis == grown.change_millis
    assert grown.commit_millis is not None
    assert (cared.compaction_millis, cared.commit_millis) == (
        grown.commit_millis + 60_000,
        grown.commit_millis + 120_000,
    )
    table.maintenance.expire_snapshots(retain_last=1)
    assert table.inspect.health() == replace(cared, snapshot_count=1)
    assert cared.snapshot_count == 4
    assert reopened(table).inspect.health().change_millis is None, "its snapshot has expired"


def test_a_first_look_at_a_tables_health_reads_each_of_its_files_once_and_the_next_next_to_nothing(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(catalog, **{"write-only": "true"})
    for price in (1, 2, 3):
        table.append(rows(f"+I a 1 {price}"))
    files = reopened(table)
    read: list[str] = []
    kept = type(files.environment.file_io).read_bytes

    def counted(file_io: object, path: str) -> bytes:
        read.append(path.removeprefix(table.location))
        return kept(file_io, path)  # type: ignore[arg-type]  # of the class that it comes from

    monkeypatch.setattr(type(files.environment.file_io), "read_bytes", counted)
    files.inspect.health()
    first, read[:] = list(read), []
    files.inspect.health()

    # The oldest snapshot's number may change at any time: one read for the query, one for each of three snapshots.
    assert first.count("/snapshot/EARLIEST") == 4
    others = [path for path in first if path != "/snapshot/EARLIEST"]
    assert len(others) == len(set(others))
    assert read == ["/snapshot/EARLIEST"]
