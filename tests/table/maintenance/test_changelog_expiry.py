"""Changelog files expire with their snapshots, or are retained longer by options; clean-ups keep needed files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from storage_lib.schema.types.row_kind import RowKind
from tests.support.paimon_core import PaimonCore
from tests.support.shared_table import SharedTable

ADD = RowKind.INSERT
COLUMNS = {"k": "INT NOT NULL", "n": "INT"}
FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
# Java's own commits fail if "min" exceeds the number of snapshots.
KEPT = {
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "100",
    "changelog.time-retained": "1 d",
    "snapshot.time-retained": "1 ms",
}
PRODUCERS = pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])


def lived(core: PaimonCore, home: Path, options: dict[str, str], *, turns: int = 4) -> SharedTable:
    table = SharedTable.made_by_us(core, home, COLUMNS, options)
    live_on(table, range(turns))
    return table


def live_on(table: SharedTable, turns: range) -> None:
    for turn in turns:
        table.append_by_us([(ADD, (turn, turn)), (ADD, (0, turn))])


def changelog_files(home: Path) -> set[str]:
    return {path.name for path in home.rglob("changelog-*-*")}


def kept_changelogs(home: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("changelog-")) for path in home.rglob("changelog/changelog-*"))


def orphans(table: SharedTable) -> tuple[str, ...]:
    return table.ours().maintenance.remove_orphan_files(older_than=timedelta(0)).paths


@PRODUCERS
def test_changelog_files_go_with_their_snapshots(paimon_core: PaimonCore, tmp_path: Path, producer: str) -> None:
    table = lived(paimon_core, tmp_path, {"changelog-producer": producer})
    table.ours().maintenance.expire_snapshots(retain_last=2)

    assert len(changelog_files(tmp_path)) == (2 if producer == "input" else 1)
    assert orphans(table) == ()
    table.append_by_us([(ADD, (7, 7))])
    assert (ADD, (7, 7)) in table.stream_by_java()


@PRODUCERS
def test_a_stream_reads_the_changelogs_of_expired_snapshots(
    paimon_core: PaimonCore, tmp_path: Path, producer: str
) -> None:
    table = lived(paimon_core, tmp_path, {**FEW, **KEPT, "changelog-producer": producer})
    told = table.stream_by_java()
    newest = table.ours().context.file_store.snapshots.latest_id() or 0
    table.ours().maintenance.expire_snapshots(retain_last=2)

    assert kept_changelogs(tmp_path) == list(range(1, newest - 1))
    assert table.stream_by_java() == told
    assert orphans(table) == ()
    table.compact_by_java()
    live_on(table, range(9, 12))
    table.ours().maintenance.expire_snapshots(retain_last=1)
    assert orphans(table) == ()
    assert table.stream_by_java()[: len(told)] == told
    if producer != "input":
        assert table.rows_of_stream() == table.rows_by_us()


def test_a_long_lived_changelog_expires_in_its_turn(paimon_core: PaimonCore, tmp_path: Path) -> None:
    options = {
        **FEW,
        "changelog-producer": "lookup",
        "changelog.num-retained.max": "5",
        "changelog.time-retained": "0 s",
    }
    table = lived(paimon_core, tmp_path, {**options, "changelog.num-retained.min": "5"}, turns=6)
    table.ours().maintenance.expire_snapshots(retain_last=2)

    assert kept_changelogs(tmp_path) == [8, 9, 10]
    assert len(changelog_files(tmp_path)) == 3
    assert orphans(table) == ()
    assert {kind.symbol for kind, _ in table.stream_by_java()} == {"+I", "-U", "+U"}


def test_a_table_without_a_producer_keeps_what_was_appended(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = lived(paimon_core, tmp_path, {**FEW, **KEPT})
    told = table.stream_by_java()
    assert len(told) == 7
    table.ours().compact()
    table.ours().maintenance.expire_snapshots(retain_last=1)

    assert table.stream_by_java() == told
    assert orphans(table) == ()
    assert table.rows_by_java() == table.rows_by_us()


def test_what_java_has_expired_below_a_tag_is_no_damage(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = lived(paimon_core, tmp_path, {**FEW, "changelog-producer": "lookup"})
    paimon_core.tag(tmp_path, "db.t", "kept", 2)
    paimon_core.expire(tmp_path, "db.t", retain_max=1)

    assert orphans(table) == ()
    assert table.ours().to_arrow(tag="kept").num_rows == 1
    table.ours().maintenance.expire_snapshots(retain_last=1)
    table.ours().tags.delete("kept")
    assert orphans(table) == ()


def test_a_branch_and_a_tag_keep_their_rows_whatever_expires(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = lived(paimon_core, tmp_path, {"changelog-producer": "lookup"})
    ours = table.ours()
    ours.tags.create("kept", snapshot_id=2)
    ours.branches.create("b", tag="kept")
    ours.branches.open("b").append(ours.branches.open("b").to_arrow())
    ours.maintenance.expire_snapshots(retain_last=1)

    assert orphans(table) == ()
    assert ours.branches.open("b").to_arrow().to_pylist() == ours.to_arrow(tag="kept").to_pylist() == [{"k": 0, "n": 0}]


def test_an_abandoned_write_leaves_no_changelog_file(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = lived(paimon_core, tmp_path, {"changelog-producer": "input"}, turns=1)
    before = changelog_files(tmp_path)
    ours = table.ours()
    order = ours.new_write().begin(commit_user="tests")
    write = ours.new_write().open_task(order)
    write.write(ours.to_arrow())
    message = write.prepare_commit()
    assert len(changelog_files(tmp_path) - before) == 1
    ours.new_write().abort(order, [message])

    assert changelog_files(tmp_path) == before
