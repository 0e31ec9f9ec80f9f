"""When a table has an Iceberg view, where it lies, what ends it, and which tables can't have one."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib import (
    AlterType,
    DynamicTable,
    InvalidInputError,
    RemoveOption,
    SetOption,
    open_catalog,
)
from storage_lib.catalog.catalog import Catalog
from storage_lib.file_store.data_file.field_ids import with_field_id
from storage_lib.iceberg.iceberg_view import IcebergView
from storage_lib.iceberg.publish.shown_files import refuse_unfit_files
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.schema.options.table_options import UUID_OPTION
from tests.support.fake_environment import FakeClock
from tests.support.iceberg_readers import READERS, needs_readers, read_view
from tests.support.orders_table import orders, rows
from tests.support.view_reader import newest_metadata, shown_rows, table_rows

OPTION = "metadata.iceberg.storage"
COLUMNS = {"id": "BIGINT", "n": "INT", "t": "STRING"}
KEPT_ROWS = [{"id": 1, "n": 1, "t": "a"}, {"id": 2, "n": 2, "t": "b"}]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return open_catalog(str(tmp_path / "lake"))


def a_table(catalog: Catalog, storage: str = "table-location", **options: str) -> DynamicTable:
    """Create a table with a view and two snapshots."""
    spelled = {key.replace("_", "-"): value for key, value in options.items()}
    table = catalog.create_table("d.t", COLUMNS, primary_key=["id"], options={OPTION: storage, **spelled})
    table.append([*KEPT_ROWS, {"id": 3, "n": 3, "t": "c"}])
    table.delete([{"id": 3}])
    return table


def a_table_of_sums(catalog: Catalog, engine: str, **more: str) -> DynamicTable:
    """Create a table whose rows are combined from the versions of their key, with a snapshot."""
    options = {OPTION: "table-location", "merge-engine": engine, **more}
    if engine == "aggregation":
        options["fields.n.aggregate-function"] = "sum"
    table = catalog.create_table("d.t", COLUMNS, primary_key=["id"], options=options)
    table.append(KEPT_ROWS)
    return table


def check_shown(table: DynamicTable, directory: Path) -> Mapping[str, object]:
    """Compare the view in a directory with the newest rows; return its metadata."""
    files = table.environment.file_io
    metadata = newest_metadata(files, str(directory))
    assert metadata["current-snapshot-id"] == table.inspect.latest_snapshot_id()
    assert shown_rows(files, metadata) == table_rows(table.to_arrow())
    return metadata


@needs_readers
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("storage", "place"), [("table-location", "d.db/t/metadata"), ("hadoop-catalog", "iceberg/d/t/metadata")]
)
def test_a_view_in_a_relative_warehouse_is_read_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, place: str, reader: str
) -> None:
    monkeypatch.chdir(tmp_path)
    a_table(open_catalog("lake"), storage)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    found = read_view(reader, f"{tmp_path}/lake/{place}/v2.metadata.json", tmp_path)

    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == KEPT_ROWS


def test_the_view_of_a_new_table_is_empty(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("d.t", COLUMNS, primary_key=["id"], options={OPTION: "table-location"})

    metadata = newest_metadata(table.environment.file_io, str(tmp_path / "lake/d.db/t/metadata"))
    assert metadata["snapshots"] == []
    assert table.inspect.health().view_lag is None


@pytest.mark.parametrize(
    ("storage", "place"), [("table-location", "d.db/t/metadata"), ("hadoop-catalog", "iceberg/d/t/metadata")]
)
def test_the_view_lies_where_paimon_puts_it_and_goes_with_the_table(
    catalog: Catalog, tmp_path: Path, storage: str, place: str
) -> None:
    table = a_table(catalog, storage)
    directory = tmp_path / "lake" / place

    check_shown(table, directory)
    assert table.describe()["iceberg view"] == str(directory.parent)
    assert table.describe()["iceberg view shows"] == "snapshot 2"
    catalog.drop_table("d.t")
    assert not directory.exists()


@pytest.mark.parametrize("storage", ["table-location", "hadoop-catalog"])
def test_a_renamed_table_has_its_view_under_the_new_name(catalog: Catalog, tmp_path: Path, storage: str) -> None:
    a_table(catalog, storage)

    renamed = catalog.rename_table("d.t", "d.u")

    root = tmp_path / "lake"
    check_shown(renamed, root / ("d.db/u/metadata" if storage == "table-location" else "iceberg/d/u/metadata"))
    assert not (root / "iceberg/d/t").exists()


def test_a_view_that_is_switched_on_begins_with_the_newest_snapshot(catalog: Catalog, tmp_path: Path) -> None:
    table = a_table(catalog, "disabled")
    directory = tmp_path / "lake/d.db/t/metadata"
    assert not directory.exists()

    table = table.alter(SetOption(OPTION, "table-location"))

    assert [each["snapshot-id"] for each in check_shown(table, directory)["snapshots"]] == [2]  # type: ignore[attr-defined]
    table.append([{"id": 1, "n": 5, "t": "z"}])
    check_shown(table, directory)


def test_a_view_that_is_switched_off_is_gone_and_stays_so(catalog: Catalog, tmp_path: Path) -> None:
    opened_before = a_table(catalog)

    opened_before.alter(RemoveOption(OPTION))
    opened_before.append([{"id": 7, "n": 7, "t": "g"}])

    assert not (tmp_path / "lake/d.db/t/metadata").exists()


def test_a_process_that_opened_the_table_before_leaves_the_view_to_the_next_one(
    catalog: Catalog, tmp_path: Path
) -> None:
    opened_before = a_table(catalog, "disabled")
    table = opened_before.alter(SetOption(OPTION, "table-location"))

    opened_before.append([{"id": 7, "n": 7, "t": "g"}])

    assert table.inspect.health().view_lag == 1
    assert table.maintenance.publish_iceberg() == 3
    check_shown(table, tmp_path / "lake/d.db/t/metadata")


def test_a_process_that_opened_the_table_before_takes_no_files_from_the_view(catalog: Catalog, tmp_path: Path) -> None:
    opened_before = a_table(catalog, "disabled")
    table = opened_before.alter(SetOption(OPTION, "table-location"))
    for number in range(4):
        opened_before.append([{"id": number, "n": 7, "t": "g"}])
    opened_before.compact(full=True)

    opened_before.maintenance.expire_snapshots(retain_last=1)

    check_shown(table, tmp_path / "lake/d.db/t/metadata")
    removed = opened_before.maintenance.remove_orphan_files(older_than=timedelta(0)).paths
    assert all("/metadata/" in path for path in removed)  # of snapshots that the view no longer shows
    check_shown(table, tmp_path / "lake/d.db/t/metadata")


def test_a_commit_leaves_out_what_an_expiry_beside_another_commit_did_not_drop(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(catalog)
    table.append([{"id": 5, "n": 7, "t": "g"}])
    monkeypatch.setattr(IcebergView, "drop_expired", lambda _: None)
    table.maintenance.expire_snapshots(retain_last=1)

    table.append([{"id": 6, "n": 7, "t": "g"}])

    metadata = check_shown(table, tmp_path / "lake/d.db/t/metadata")
    assert [each["snapshot-id"] for each in metadata["snapshots"]] == [3, 4]  # type: ignore[attr-defined]


def test_the_spelling_of_the_place_does_not_matter(catalog: Catalog, tmp_path: Path) -> None:
    table = a_table(catalog, "Hadoop-Catalog")
    check_shown(table, tmp_path / "lake/iceberg/d/t/metadata")

    catalog.drop_table("d.t")

    assert not (tmp_path / "lake/iceberg/d/t").exists()


def test_a_commit_of_an_engine_of_iceberg_is_not_built_upon(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(catalog)
    directory = tmp_path / "lake/d.db/t/metadata"
    metadata = json.loads((directory / "v2.metadata.json").read_text())
    foreign = {**metadata["snapshots"][-1], "snapshot-id": 8_111_222_333, "parent-snapshot-id": 2}
    written = {**metadata, "snapshots": [*metadata["snapshots"], foreign], "current-snapshot-id": 8_111_222_333}
    for number in (3, 4):
        (directory / f"v{number}.metadata.json").write_text(json.dumps(written))
    (directory / "version-hint.text").write_text("4")

    with caplog.at_level(logging.WARNING):
        table.append([{"id": 1, "n": 5, "t": "z"}])

    assert "was not written by this library" in caplog.text
    assert [each["snapshot-id"] for each in check_shown(table, directory)["snapshots"]] == [1, 2, 3]  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", ["deleted", "cut short"])
def test_a_view_whose_manifests_are_gone_begins_again(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    a_table(catalog)
    directory = tmp_path / "lake/d.db/t/metadata"
    for path in directory.glob("*.avro"):
        if damage == "deleted":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-20])
    table = catalog.load_table("d.t")

    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == ()
    with caplog.at_level(logging.WARNING):
        table.append([{"id": 1, "n": 5, "t": "z"}])

    assert "is damaged, and begins again" in caplog.text
    assert [each["snapshot-id"] for each in check_shown(table, directory)["snapshots"]] == [3]  # type: ignore[attr-defined]
    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths


def test_expired_snapshots_leave_the_view_before_their_files(catalog: Catalog, tmp_path: Path) -> None:
    table = a_table(catalog)
    directory = tmp_path / "lake/d.db/t/metadata"
    table.tags.create("kept", 1)
    for n in range(3):
        table.append([{"id": 1, "n": n, "t": "z"}])

    table.maintenance.expire_snapshots(retain_last=1)

    metadata = check_shown(table, directory)
    newest = table.inspect.latest_snapshot_id()
    assert [each["snapshot-id"] for each in metadata["snapshots"]] == [1, newest]  # type: ignore[attr-defined]
    assert metadata["refs"]["kept"] == {"snapshot-id": 1, "type": "tag"}  # type: ignore[index]
    assert shown_rows(table.environment.file_io, dict(metadata), 1) == table_rows(table.to_arrow(tag="kept"))
    table.tags.delete("kept")
    assert [each["snapshot-id"] for each in check_shown(table, directory)["snapshots"]] == [newest]  # type: ignore[attr-defined]
    assert len(list(directory.glob("snap-*.avro"))) == 1


@pytest.mark.parametrize(
    ("key", "options", "says"),
    [
        ([], {}, "declare a primary key, or write-mode=append-only"),
        (["id"], {"file.format": "orc"}, "set file.format=parquet"),
        (["id"], {OPTION: "glue"}, "use one of disabled, table-location, hadoop-catalog, hive-catalog, rest-catalog"),
    ],
)
def test_a_table_that_cannot_be_shown_exactly_is_refused(
    catalog: Catalog, key: list[str], options: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        catalog.create_table("d.t", COLUMNS, primary_key=key, options={OPTION: "table-location", **options})

    assert not catalog.table_exists("d.t")
    if OPTION not in options:
        table = catalog.create_table("d.t", COLUMNS, primary_key=key, options=options)
        with pytest.raises(InvalidInputError, match=says):
            table.alter(SetOption(OPTION, "table-location"))


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_a_view_of_combined_rows_waits_for_compactions_and_says_so(
    catalog: Catalog, tmp_path: Path, engine: str
) -> None:
    table = a_table_of_sums(catalog, engine)
    directory = tmp_path / "lake/d.db/t/metadata"
    table.append([{"id": 1, "n": 5, "t": None}])

    metadata = newest_metadata(table.environment.file_io, str(directory))
    assert metadata["current-snapshot-id"] == 1
    assert metadata["properties"]["dynamic-table.shows"] == "snapshots whose rows compactions have merged"
    assert shown_rows(table.environment.file_io, metadata) == table_rows(table.to_arrow(snapshot_id=1))
    says = "snapshot 1; 1 later ones wait for a compaction to merge their rows"
    assert table.describe()["iceberg view shows"] == says
    health = table.inspect.health()
    assert (health.view_snapshot_id, health.view_lag, health.view_waiting_count) == (1, 0, 1)
    assert table.maintenance.publish_iceberg() == 1
    table.compact(full=True)
    check_shown(table, directory)
    assert table.describe()["iceberg view shows"] == "snapshot 3"


@pytest.mark.parametrize("more", [{"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}])
def test_a_view_of_rows_that_each_commit_combines_shows_each_commit(
    catalog: Catalog, tmp_path: Path, more: dict[str, str]
) -> None:
    table = a_table_of_sums(catalog, "aggregation", **more)
    for n in range(3):
        table.append([{"id": n, "n": 5, "t": None}, {"id": 1, "n": n, "t": None}])
        check_shown(table, tmp_path / "lake/d.db/t/metadata")


def test_expiry_keeps_the_snapshot_that_a_view_waits_at_until_it_shows_a_newer_one_for_ten_minutes() -> None:
    options = {"metadata.iceberg.storage": "table-location", "log.system": "none", "write-only": "true"}
    sums = {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum"}
    table = orders(None, **options, **sums)
    clock, files = table.environment.clock, table.environment.file_io
    assert isinstance(clock, FakeClock)
    for number in range(4):
        table.append(rows(f"+I a 1 {number}", "+I a 2 1"))
    directory = f"{table.location}/metadata"

    table.maintenance.expire_snapshots(retain_last=1)

    assert [tag.name for tag in table.tags.list()] == ["iceberg-view-1"]
    held = table_rows(table.to_arrow(tag="iceberg-view-1"))
    assert shown_rows(files, newest_metadata(files, directory)) == held
    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == ()
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    assert shown_rows(files, newest_metadata(files, directory), 1) == held
    clock.sleep(600)
    before = len(list(files.list_directory(f"{table.location}/dt=a/bucket-0")))
    table.maintenance.expire_snapshots(retain_last=1)
    assert table.tags.list() == ()
    assert [each["snapshot-id"] for each in newest_metadata(files, directory)["snapshots"]] == [5]
    assert len(list(files.list_directory(f"{table.location}/dt=a/bucket-0"))) < before
    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == ()


def test_a_view_begins_again_if_another_engine_expired_the_snapshot_that_it_shows(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Paimon's engines know no view: they set no tag before they expire its snapshot, and leave its metadata."""
    table = a_table_of_sums(catalog, "aggregation")
    directory = tmp_path / "lake/d.db/t/metadata"
    for number in range(2):
        table.append([{"id": 1, "n": number, "t": None}])
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(IcebergView, "hold", lambda *_: None)
        elsewhere.setattr(IcebergView, "drop_expired", lambda _: None)
        table.maintenance.expire_snapshots(retain_last=1)
    assert newest_metadata(table.environment.file_io, str(directory))["current-snapshot-id"] == 1

    table.append([{"id": 1, "n": 7, "t": None}])
    with caplog.at_level(logging.WARNING):
        table.maintenance.expire_snapshots(retain_last=1)

    assert "another engine expired the snapshot that the Iceberg view of table d.t shows" in caplog.text
    assert not directory.exists()
    assert table.inspect.health().view_snapshot_id == 0
    table.compact(full=True)
    metadata = check_shown(table, directory)
    assert [each["snapshot-id"] for each in metadata["snapshots"]] == [5]  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_commit_builds_upon_a_view_whose_snapshot_another_engine_expired(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_compacted: bool
) -> None:
    """The masks of the new snapshot come from its own files alone."""
    table = a_table_of_sums(catalog, "aggregation")
    for number in range(2):
        table.append([{"id": 1, "n": number, "t": None}, {"id": 7, "n": 1, "t": None}])
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(IcebergView, "hold", lambda *_: None)
        elsewhere.setattr(IcebergView, "drop_expired", lambda _: None)
        if is_compacted:
            elsewhere.setattr(IcebergView, "publish", lambda *_: None)
            table.compact(full=True)
        table.maintenance.expire_snapshots(retain_last=1)

    table.append([{"id": 2, "n": 5, "t": None}])
    table.compact(full=True)

    check_shown(table, tmp_path / "lake/d.db/t/metadata")


def test_a_view_that_is_switched_on_begins_with_the_newest_snapshot_that_it_can_show(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = a_table_of_sums(catalog, "aggregation", **{OPTION: "disabled"})
    table.append([{"id": 1, "n": 5, "t": None}])
    table.compact(full=True)
    table.append([{"id": 1, "n": 6, "t": None}])

    table = table.alter(SetOption(OPTION, "table-location"))

    files = table.environment.file_io
    metadata = newest_metadata(files, str(tmp_path / "lake/d.db/t/metadata"))
    assert metadata["current-snapshot-id"] == 3
    assert shown_rows(files, metadata) == table_rows(table.to_arrow(snapshot_id=3))


def test_a_branch_neither_begins_nor_ends_a_view(catalog: Catalog) -> None:
    table = a_table(catalog)
    table.tags.create("start", 1)
    table.branches.create("b", tag="start")

    with pytest.raises(InvalidInputError, match="cannot be changed on a branch"):
        table.branches.open("b").alter(RemoveOption(OPTION))


def test_partitions_of_a_key_by_floats_are_refused(catalog: Catalog) -> None:
    columns = {**COLUMNS, "x": "DOUBLE"}
    with pytest.raises(InvalidInputError, match="no view partitions by 'x'"):
        catalog.create_table(
            "d.t", columns, primary_key=["id", "x"], partition_by=["x"], options={OPTION: "table-location"}
        )


def test_names_that_readers_take_for_others_are_refused(catalog: Catalog) -> None:
    options = {OPTION: "table-location", "write-mode": "append-only"}
    with pytest.raises(InvalidInputError, match=r"take column 'a\.b' for a part"):
        catalog.create_table("d.t", {"a": "ROW<b INT>", "a.b": "INT"}, options=options)
    partitions = ["a b", "a_x20b"]
    with pytest.raises(InvalidInputError, match="partition columns 'a b' and 'a_x20b' have one name"):
        catalog.create_table(
            "d.t", {**dict.fromkeys(partitions, "INT"), "n": "INT"}, partition_by=partitions, options=options
        )


def test_a_table_of_another_engine_gets_no_view(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("d.t", COLUMNS, primary_key=["id"])
    path = tmp_path / "lake/d.db/t/schema/schema-0"
    schema = json.loads(path.read_text())
    del schema["options"][UUID_OPTION]
    path.write_text(json.dumps(schema))

    with pytest.raises(InvalidInputError, match="another engine created this table"):
        open_catalog(str(tmp_path / "lake")).load_table("d.t").alter(SetOption(OPTION, "table-location"))


@pytest.mark.parametrize(
    "of",
    [
        "TIME(3)",
        "VARIANT",
        "ARRAY<TIME(3)>",
        "TIMESTAMP(3)",
        "TIMESTAMP(0)",
        "ROW<a TIMESTAMP(0) WITH LOCAL TIME ZONE>",
    ],
)
def test_a_column_without_a_counterpart_is_refused_by_its_name(catalog: Catalog, of: str) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'x': .* has no counterpart in Iceberg"):
        catalog.create_table("d.t", {**COLUMNS, "x": of}, primary_key=["id"], options={OPTION: "table-location"})


def test_a_change_of_a_type_that_iceberg_does_not_know_is_refused(catalog: Catalog) -> None:
    table = a_table(catalog)
    with pytest.raises(InvalidInputError, match="column 'n' was INT and is DOUBLE"):
        table.alter(AlterType("n", "DOUBLE"))

    moments = catalog.create_table("d.m", {"id": "INT", "at": "TIMESTAMP(3)"}, primary_key=["id"])
    moments = moments.alter(AlterType("at", "TIMESTAMP(6)"))
    with pytest.raises(InvalidInputError, match=r"column 'at' was TIMESTAMP\(3\) and is TIMESTAMP\(6\)"):
        moments.alter(SetOption(OPTION, "table-location"))
    unseen = table.alter(RemoveOption(OPTION)).alter(AlterType("n", "DOUBLE"))
    with pytest.raises(InvalidInputError, match="column 'n' was INT and is DOUBLE"):
        unseen.alter(SetOption(OPTION, "table-location"))


def test_files_of_another_format_end_the_view_until_they_are_compacted(
    catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = catalog.create_table("d.t", COLUMNS, primary_key=["id"], options={"file.format": "orc"})
    table.append(KEPT_ROWS)

    with caplog.at_level(logging.WARNING):
        table = table.alter(SetOption("file.format", "parquet"), SetOption(OPTION, "table-location"))

    assert "is not a Parquet file, so its Iceberg view ends" in caplog.text
    assert table.inspect.health().view_lag == 1
    table.upsert([{"id": 1, "n": 5, "t": "z"}])
    assert table.describe()["iceberg view shows"] == "nothing yet; the next commit creates it"
    table.compact()
    check_shown(table, tmp_path / "lake/d.db/t/metadata")


def test_a_file_of_another_writer_needs_field_ids(tmp_path: Path) -> None:
    path = str(tmp_path / "data-1.parquet")
    plain = pa.table({"id": [1]})
    refuse = partial(refuse_unfit_files, "d.t", LocalFileIO(), [path])
    pq.write_table(plain, path)

    refuse(are_ours=True)
    with pytest.raises(InvalidInputError, match="has no field ids"):
        refuse(are_ours=False)
    pq.write_table(plain.cast(pa.schema([with_field_id(plain.schema.field("id"), 0)])), path)
    refuse(are_ours=False)


def test_older_metadata_stays_for_ten_minutes() -> None:
    table = orders(None, **{"metadata.iceberg.storage": "table-location", "log.system": "none"})
    clock, files = table.environment.clock, table.environment.file_io
    assert isinstance(clock, FakeClock)

    def numbers() -> list[int]:
        names = [each.name for each in files.list_directory(f"{table.location}/metadata")]
        return sorted(int(name[1:].split(".")[0]) for name in names if name.endswith(".metadata.json"))

    for minute in range(14):
        table.append(rows(f"+I a 1 {minute}"))
        clock.sleep(60)

    newest = table.inspect.latest_snapshot_id() or 0
    assert numbers()[-1] == newest
    first = next(each for each in numbers() if each)
    history = table.context.file_store.snapshots
    age = history.load(newest).time_millis - history.load(first).time_millis
    assert 480_000 < age <= 660_000
