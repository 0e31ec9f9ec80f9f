"""A log for readers of Delta follows the Iceberg view: after each commit, delta-rs and Polars see the table's rows."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    DynamicTable,
    InvalidInputError,
    RenameColumn,
    SetOption,
    UnavailableError,
    open_catalog,
)
from storage_lib.iceberg.delta.delta_actions import LogState
from storage_lib.iceberg.delta.delta_log import DeltaLog
from storage_lib.iceberg.delta.inline_vector import z85
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.iceberg.drawn_views import DrawnView, draw_view, move, rows_at
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.iceberg_readers import canonical, view_of

pytestmark = needs("deltalake")
STEPS = 12
OPTIONS = {"metadata.iceberg.storage": "table-location", "metadata.delta.enabled": "true", "log.system": "none"}


def read_by_delta_rs(location: str) -> pa.Table:
    from deltalake import DeltaTable

    return pa.table(DeltaTable(location).scan())


def read_by_polars(location: str) -> pa.Table:
    return pl.scan_delta(location).collect().to_arrow()


@pytest.mark.parametrize("seed", thinned(range(60), keep=3))
def test_readers_of_delta_see_the_rows_of_each_snapshot(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, open_catalog(str(tmp_path / "warehouse")))
    print(drawn.table.schema.fields, drawn.key, drawn.partition, drawn.options)
    if rng.random() < 0.3:
        move(drawn, rng)
    drawn.table = drawn.table.refresh().alter(SetOption("metadata.delta.enabled", "true"))

    for _ in range(STEPS):
        print(move(drawn, rng))
        check(drawn)
    drawn.table.refresh().compact(full=True)
    check(drawn)


def check(drawn: DrawnView) -> None:
    table = drawn.table.refresh()
    shown = view_of(table).delta.shown_snapshot()
    if not shown:
        return
    expected = table.to_arrow() if shown == table.inspect.latest_snapshot_id() else rows_at(table, shown)
    location = table.context.location
    names = [each for each in read_by_delta_rs(location).column_names if each in expected.column_names]
    assert canonical(read_by_delta_rs(location), names) == canonical(expected, names)
    if any("%" in path for path in logged_paths(table)):
        from deltalake.exceptions import DeltaProtocolError

        # It would find no vector of such a path, and show hidden rows.
        with pytest.raises(DeltaProtocolError, match="columnMapping"):
            read_by_polars(location)
    else:
        assert canonical(read_by_polars(location), names) == canonical(expected, names)


def actions(table: DynamicTable) -> list[list[dict[str, Any]]]:
    """Return the actions of each version."""
    versions = sorted(Path(table.context.location, "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in each.read_text().splitlines()] for each in versions]


def logged_paths(table: DynamicTable) -> list[str]:
    return [each["add"]["path"] for version in actions(table) for each in version if "add" in each]


def created(warehouse: Path, **options: str) -> DynamicTable:
    catalog = open_catalog(str(warehouse))
    return catalog.create_table(
        "d.t", {"id": "BIGINT", "n": "INT"}, primary_key=["id"], options={**OPTIONS, "bucket": "1", **options}
    )


def seen(table: DynamicTable) -> list[dict[str, object]]:
    return sorted(read_by_delta_rs(table.context.location).to_pylist(), key=lambda row: row["id"])


def stored(table: DynamicTable) -> list[dict[str, object]]:
    return sorted(table.refresh().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_a_text_is_that_of_the_specification() -> None:
    assert z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert z85(b"") == ""
    assert len(z85(bytes(5))) == 10


def test_a_log_needs_a_view(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="needs an Iceberg view"):
        created(tmp_path, **{"metadata.iceberg.storage": "disabled"})
    table = created(tmp_path)
    with pytest.raises(InvalidInputError, match="needs an Iceberg view"):
        table.alter(SetOption("metadata.iceberg.storage", "disabled"))


def test_a_log_begins_and_ends_with_its_option(tmp_path: Path) -> None:
    table = created(tmp_path, **{"metadata.delta.enabled": "false"})
    table.append([{"id": 1, "n": 1}])
    log = Path(table.context.location, "_delta_log")
    assert not log.exists()

    table = table.alter(SetOption("metadata.delta.enabled", "true"))
    assert seen(table) == stored(table)
    table = table.alter(SetOption("metadata.delta.enabled", "false"))
    assert not log.exists()
    table = table.alter(SetOption("metadata.delta.enabled", "true"))
    table.upsert([{"id": 1, "n": 2}])
    assert seen(table) == [{"id": 1, "n": 2}]
    table.alter(SetOption("metadata.delta.enabled", "false"), SetOption("metadata.iceberg.storage", "disabled"))
    assert not log.exists()


def test_a_commit_whose_version_was_not_written_stands_and_the_next_one_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path)
    table.append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "follow", fails)
        table.delete("id = 1")
    assert stored(table) == [{"id": 2, "n": 2}]
    assert seen(table) == [{"id": 1, "n": 1}, {"id": 2, "n": 2}]

    table.append([{"id": 3, "n": 3}])
    assert seen(table) == stored(table) == [{"id": 2, "n": 2}, {"id": 3, "n": 3}]


def test_an_expiry_brings_up_a_log_that_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = created(tmp_path)
    table.append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "follow", fails)
        table.delete("id = 1")
        table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    assert seen(table) == [{"id": 2, "n": 2}]


def fails(*_: object) -> None:
    message = "the store is down"
    raise UnavailableError(message)


def test_two_processes_write_one_log(tmp_path: Path) -> None:
    tables = [created(tmp_path), open_catalog(str(tmp_path)).load_table("d.t")]
    for number in range(25):
        tables[number % 2].upsert([{"id": number % 7, "n": number}, {"id": 100 + number, "n": 0}])
        if number % 5 == 4:
            tables[0].delete(f"id = {number % 7}")
        assert seen(tables[0]) == stored(tables[0])
    assert Path(tables[0].context.location, "_delta_log", "00000000000000000020.checkpoint.parquet").exists()
    (again,) = [open_catalog(str(tmp_path)).load_table("d.t")]
    again.append([{"id": 1000, "n": 1}])
    assert seen(again) == stored(again)


def test_other_programs_do_not_write_and_what_they_wrote_is_taken_back(tmp_path: Path) -> None:
    from deltalake import write_deltalake
    from deltalake.exceptions import DeltaError

    table = created(tmp_path)
    table.append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    more = pa.table({"id": pa.array([9], pa.int64()), "n": pa.array([9], pa.int32())})
    with pytest.raises(DeltaError, match="dynamicTable"):
        write_deltalake(table.context.location, more, mode="append")

    log = Path(table.context.location, "_delta_log")
    newest = max(log.glob("*.json"))
    (path,) = {*logged_paths(table)}
    removal = {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}
    (log / f"{int(newest.stem) + 1:020}.json").write_text(json.dumps(removal) + "\n")
    assert seen(table) == []
    table.append([{"id": 3, "n": 3}])
    assert seen(table) == stored(table)


def test_readers_see_a_renamed_column_after_its_files_were_compacted(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.append([{"id": 1, "n": 1}])
    table = table.alter(RenameColumn("n", "m"))
    table.append([{"id": 2, "m": 2}])
    assert seen(table) == [{"id": 1, "n": 1}]
    assert table.describe()["delta log shows"] == "snapshot 1, 1 behind"

    table.compact(full=True)
    assert table.describe()["delta log shows"] == "snapshot 3"
    assert seen(table) == [{"id": 1, "m": 1}, {"id": 2, "m": 2}]


def test_streams_of_delta_pass_over_compactions(tmp_path: Path) -> None:
    table = created(tmp_path, **{"write-only": "true"})
    table.append([{"id": 1, "n": 1}])
    table.upsert([{"id": 1, "n": 2}])
    table.compact(full=True)
    changes = [
        {each[name]["dataChange"] for each in version for name in ("add", "remove") if name in each}
        for version in actions(table)
    ]
    assert changes == [set(), {True}, {True}, {False}]


@pytest.mark.parametrize("what", ["the log was begun again", "old versions were deleted"])
def test_a_process_that_stood_still_before_a_version_does_not_continue_an_old_log(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path)
    table.append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    create = LocalFileIO.create_if_absent

    def resumed(files: LocalFileIO, path: str, data: bytes) -> bool:
        if path.endswith("_delta_log/00000000000000000002.json"):
            monkeypatch.setattr(LocalFileIO, "create_if_absent", create)
            pass_time(open_catalog(str(tmp_path)).load_table("d.t"), what)
        return create(files, path, data)

    monkeypatch.setattr(LocalFileIO, "create_if_absent", resumed)
    table.upsert([{"id": 1, "n": 3}])
    assert seen(table) == stored(table)
    table.append([{"id": 3, "n": 3}])
    assert seen(table) == stored(table)


def pass_time(table: DynamicTable, what: str) -> None:
    """Change the log by schemas alone, because the suspended process holds the lease."""
    if what == "the log was begun again":
        table = table.alter(SetOption("metadata.delta.enabled", "false"))
        table.alter(SetOption("metadata.delta.enabled", "true")).alter(AddColumn("more", "INT"))
        return
    for number in range(20):
        table = table.alter(AddColumn(f"more_{number}", "INT"))
    for version in Path(table.context.location, "_delta_log").glob("0000000000000000000?.json"):
        version.unlink()


def test_streams_of_delta_do_not_pass_over_rows_that_a_compaction_has_combined(tmp_path: Path) -> None:
    table = created(tmp_path, **{"merge-engine": "partial-update", "ignore-delete": "true"})
    for number in (1, 2):
        table.append([{"id": 1, "n": number}])
        table.compact(full=True)
    assert seen(table) == stored(table) == [{"id": 1, "n": 2}]
    assert {each["add"]["dataChange"] for each in actions(table)[-1] if "add" in each} == {True}
    newest = view_of(table).directory.newest()
    assert newest is not None
    assert [each.summary["operation"] for each in newest.snapshots if (each.parent or 0) < each.id - 1] == ["overwrite"]


@pytest.mark.parametrize("left", ["a checkpoint", "a truncated version", "a damaged checkpoint"])
def test_what_is_left_of_a_log_is_not_gone_on_with(tmp_path: Path, left: str) -> None:
    table = created(tmp_path)
    for number in range(14):
        table.upsert([{"id": number, "n": number}])
    log = Path(table.context.location, "_delta_log")
    if left == "a checkpoint":
        for version in log.glob("*.json"):
            version.unlink()
    elif left == "a truncated version":
        newest = max(log.glob("*.json"))
        newest.write_bytes(newest.read_bytes()[:-20])
    else:
        next(log.glob("*.checkpoint.parquet")).write_bytes(b"PAR1")
    again = open_catalog(str(tmp_path)).load_table("d.t")
    for number in range(14):
        again.upsert([{"id": 100 + number, "n": number}])
        assert seen(again) == stored(again)
    table.delete("id = 100")
    assert seen(table) == stored(table)


def test_a_log_that_begins_again_before_a_checkpoint_is_written_does_not_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path)
    write = DeltaLog._checkpoint

    def resumed(log: DeltaLog, state: LogState, version: bytes) -> None:
        other = open_catalog(str(tmp_path)).load_table("d.t").alter(SetOption("metadata.delta.enabled", "false"))
        other.alter(SetOption("metadata.delta.enabled", "true"))
        write(log, state, version)

    monkeypatch.setattr(DeltaLog, "_checkpoint", resumed)
    for number in range(10):
        table.upsert([{"id": number, "n": number}])
    monkeypatch.undo()
    assert not [*Path(table.context.location, "_delta_log").glob("*checkpoint*")]
    for number in range(14):
        table.refresh().upsert([{"id": number, "n": -number}])
        assert seen(table) == stored(table)


def test_a_log_does_not_outlive_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = created(tmp_path, **{"metadata.delta.enabled": "false"})
    older = open_catalog(str(tmp_path)).load_table("d.t")
    table.append([{"id": 1, "n": 1}])
    table = table.alter(SetOption("metadata.delta.enabled", "true"))
    log = Path(table.context.location, "_delta_log")
    older.alter(SetOption("metadata.delta.enabled", "false"))
    assert not log.exists()

    table = table.refresh().alter(SetOption("metadata.delta.enabled", "true"))
    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "drop", fails)
        table = table.alter(SetOption("metadata.delta.enabled", "false"))
    assert log.exists()
    table.append([{"id": 2, "n": 2}])
    table.maintenance.expire_snapshots(retain_last=1)
    assert not log.exists()


def test_a_log_of_another_program_is_not_deleted(tmp_path: Path) -> None:
    table = created(tmp_path, **{"metadata.delta.enabled": "false"})
    log = Path(table.context.location, "_delta_log")
    log.mkdir()
    (log / "00000000000000000000.json").write_text(json.dumps({"commitInfo": {"operation": "WRITE"}}))
    table.append([{"id": 1, "n": 1}])
    table.maintenance.expire_snapshots(retain_last=1)
    assert log.exists()


def test_versions_stay_an_hour_after_their_checkpoint(tmp_path: Path) -> None:
    table = created(tmp_path, **{"write-only": "true"})
    log = Path(table.context.location, "_delta_log")
    for number in range(31):
        table.upsert([{"id": 1, "n": number}])
        for each in log.glob(f"{number:020}.*"):
            os.utime(each, (0, 0))
        if number == 20:
            assert len([*log.glob("*.json")]) == 12  # from the tenth on, which was checkpointed long ago
    assert min(log.glob("*.json")).name == "00000000000000000020.json"
    assert seen(table) == stored(table)


def test_orphan_cleanup_leaves_the_log_and_expiry_its_files(tmp_path: Path) -> None:
    table = created(tmp_path)
    for number in range(12):
        table.upsert([{"id": number % 3, "n": number}])
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    table.maintenance.remove_orphan_files(older_than=timedelta(0), dry_run=False)
    assert seen(table) == stored(table)
    table.rollback_to(snapshot_id=table.inspect.latest_snapshot_id())
    table.delete("id = 1")
    assert seen(table) == stored(table)
