"""Which files, and which rows, changed between two states of a table of Delta Lake or Iceberg."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from deltalake import DeltaTable, write_deltalake

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.lakes.open_lake import open_lake
from storage_lib.materialized.sources import lake_source
from storage_lib.materialized.sources.lake_source import LakeSource, lake_sources
from storage_lib.schema.options.materialized_table import CatalogOfQuery
from tests.support.deep_tests import thinned
from tests.support.delta_vectors import mask_rows
from tests.support.lake_lives import DELTA_FEATURES, DeltaLife, IcebergLife, LakeLife

if TYPE_CHECKING:
    from storage_lib.materialized.sources.source import Source

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records")


def source_of(warehouse: Path, kind: str = "delta") -> LakeSource:
    return LakeSource(open_lake("lake", {"type": kind, "warehouse": str(warehouse)}).history("shop", "t"))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [str(each) for each in ids]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the directory of a table of Delta Lake with three files."""
    path = tmp_path / "shop" / "t"
    for number in range(3):
        write_deltalake(str(path), rows(number), mode="append")
    return path


def changed_files(source: LakeSource, before: int) -> tuple[int, int]:
    change = source.history.change(before, source.newest())
    assert change is not None
    return len(change.removed), len(change.added)


def changed_ids(source: Source, before: int) -> list[tuple[int, int]]:
    here = source.delta(["id"], before, source.newest()).here
    assert here is not None
    return sorted((row["id"], row["_weight"]) for row in here.to_pylist())


def test_files_that_were_only_rearranged_are_not_read(path: Path, tmp_path: Path) -> None:
    DeltaTable(str(path)).optimize.compact()
    assert changed_files(source_of(tmp_path), 3) == (0, 0)

    write_deltalake(str(path), rows(7), mode="append")
    source = source_of(tmp_path)
    assert changed_files(source, 3) == (0, 1)
    assert changed_ids(source, 3) == [(7, 1)]
    assert source.named(source.newest()) == "version 4"


def test_a_file_that_was_rearranged_after_it_was_written_is_read_as_it_is_now(path: Path, tmp_path: Path) -> None:
    write_deltalake(str(path), rows(7), mode="append")
    DeltaTable(str(path)).optimize.compact()
    source = source_of(tmp_path)

    assert changed_files(source, 3) == (3, 1)
    assert changed_ids(source, 3) == [(7, 1)]


def test_rows_that_a_writer_copied_cancel_out(path: Path, tmp_path: Path) -> None:
    write_deltalake(str(path), rows(10, 11, 12), mode="append")
    DeltaTable(str(path)).update(predicate="id = 11", updates={"id": "99"})

    assert changed_ids(source_of(tmp_path), 4) == [(11, -1), (99, 1)]


def test_a_restored_version_is_a_change_like_others(path: Path, tmp_path: Path) -> None:
    DeltaTable(str(path)).restore(0)

    assert changed_ids(source_of(tmp_path), 3) == [(1, -1), (2, -1)]


def test_a_missing_file_of_the_earlier_state_is_found_before_a_row_is_read(path: Path, tmp_path: Path) -> None:
    DeltaTable(str(path)).delete("id = 1")
    recorded = source_of(tmp_path).position(3)
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    source = source_of(tmp_path)

    with pytest.raises(SnapshotExpiredError, match=r"version 2 of lake.shop.t has expired: its file .* is gone"):
        source.history.change(3, source.newest())
    reason = source.why_full("lake.shop.t", ["id"], recorded, source.newest())
    assert reason is not None
    assert "has expired" in reason


@pytest.mark.parametrize("features", DELTA_FEATURES[1:3])
def test_a_missing_file_of_a_table_that_is_read_as_a_whole_is_found(tmp_path: Path, features: dict[str, str]) -> None:
    path = tmp_path / "shop" / "t"
    for number in range(2):
        write_deltalake(str(path), rows(number), mode="append", configuration=features if number == 0 else None)
    write_deltalake(str(path), rows(5), mode="overwrite")
    assert changed_ids(source_of(tmp_path), 2) == [(0, -1), (1, -1), (5, 1)]
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)

    with pytest.raises(SnapshotExpiredError, match="is gone"):
        source_of(tmp_path).delta(["id"], 2, 3)


def test_rows_of_a_deletion_vector_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "shop" / "t"
    write_deltalake(str(path), rows(*range(5)), configuration={"delta.enableDeletionVectors": "true"})
    file = pa.table(DeltaTable(str(path)).get_add_actions()).to_pylist()[0]["path"]
    mask_rows(path, 1, file, [1, 3])
    mask_rows(path, 2, file, [1, 3, 4])

    assert changed_ids(source_of(tmp_path), 1) == [(1, -1), (3, -1), (4, -1)]
    assert changed_ids(source_of(tmp_path), 2) == [(4, -1)]


def test_a_table_with_another_history_is_not_taken_for_the_same(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "backup")
    write_deltalake(str(path), rows(7), mode="append")
    recorded = source_of(tmp_path).position(4)
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "backup", path)
    columns = ["id"]

    behind = source_of(tmp_path).why_full("t", columns, recorded, 3)
    assert behind is not None
    assert "version 3 of lake.shop.t has expired" in behind
    write_deltalake(str(path), rows(8), mode="append")
    other = source_of(tmp_path).why_full("t", columns, recorded, 4)
    assert other == "source t was replaced: version 3 is another one now"


def test_a_table_without_the_log_of_its_newest_version_is_read_as_a_whole(path: Path, tmp_path: Path) -> None:
    DeltaTable(str(path)).create_checkpoint()
    for commit in (path / "_delta_log").glob("*.json"):
        commit.unlink()
    recorded = source_of(tmp_path).position(3)
    assert source_of(tmp_path).position(3) == recorded
    assert source_of(tmp_path).rows(["id"], 3).num_rows == 3
    reason = source_of(tmp_path).why_full("t", ["id"], recorded, 3)
    assert reason is not None
    assert "its commit is not in the log any more" in reason


def test_a_recreated_table_has_another_key(path: Path, tmp_path: Path) -> None:
    before = source_of(tmp_path).key
    shutil.rmtree(path)
    write_deltalake(str(path), rows(1))

    assert source_of(tmp_path).key != before


def test_a_column_that_was_altered_is_named(path: Path, tmp_path: Path) -> None:
    recorded = source_of(tmp_path).position(3)
    other = pa.table({"id": pa.array(["x"]), "v": ["y"]})
    write_deltalake(str(path), other, mode="overwrite", schema_mode="overwrite")
    source = source_of(tmp_path)

    assert source.why_full("t", ["v"], recorded, 4) is None
    assert source.why_full("t", ["id"], recorded, 4) == "column id of source t was altered"


def test_many_changed_rows_are_left_to_an_engine(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_source, "BYTES_HERE_MAX", 100)
    delta = source_of(tmp_path).delta(["id"], 1, 3)

    assert delta.here is None
    assert delta.row_count == 2
    assert delta.files is not None
    assert [len(delta.files.removed), len(delta.files.added)] == [0, 2]


def test_one_table_by_two_names_is_refused(path: Path, tmp_path: Path) -> None:
    options = (("type", "delta"), ("warehouse", str(tmp_path)))
    twice = [CatalogOfQuery(name=name, options=options, tables=("shop.t",)) for name in ("a", "b")]

    with pytest.raises(InvalidInputError, match=r"one table by two names, a.shop.t and b.shop.t"):
        lake_sources("m", twice)
    with pytest.raises(NotFoundError, match=r"lake.shop.u does not exist"):
        lake_sources("m", [CatalogOfQuery(name="lake", options=options, tables=("shop.u",))])


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("seed", thinned(range(3)))
def test_changes_between_any_two_states_add_up(tmp_path: Path, kind: str, seed: int) -> None:
    """The rows of any state plus the change from it to any other are the rows of the other."""
    chance = random.Random(seed)  # noqa: S311
    life: LakeLife
    if kind == "delta":
        life = DeltaLife(tmp_path / "lake", chance, DELTA_FEATURES[seed])
    else:
        life = IcebergLife(tmp_path / "lake", chance, str(seed % 2 + 1))
    columns = ["id", "cat", "amount", "price"]
    known: dict[tuple[str, int], list[tuple[object, ...]]] = {}
    for _ in range(9):
        life.step()
        lake = open_lake("lake", {"type": kind, "warehouse": str(life.warehouse)})
        source = LakeSource(lake.history("shop", "orders"))
        newest = source.newest()
        now = sorted(map(_row, life.rows().select(columns).to_pylist()), key=repr)
        for (key, number), rows_then in known.items():
            if key != source.key or number == 0:
                continue
            try:
                delta = source.delta(columns, number, newest)
            except SnapshotExpiredError:
                continue
            bag = list(rows_then)
            assert delta.here is not None
            for row in delta.here.to_pylist():
                weight = row.pop("_weight")
                if weight > 0:
                    bag.append(_row(row))
                else:
                    bag.remove(_row(row))
            assert sorted(bag, key=repr) == now, (life.done, number, newest)
        known[source.key, newest] = now
    assert len(known) > 3


def _row(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row.values())
