"""Masks that a view updates for added rows are those that a merge of all files gives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyroaring import BitMap64

from storage_lib import DynamicTable, SetOption, open_catalog
from storage_lib.file_store.merge_tree.standing import coded_keys
from storage_lib.iceberg.publish.known_masks import KnownMasks
from storage_lib.iceberg.publish.next_masks import FileChange, next_masks
from storage_lib.iceberg.publish.view_content import ViewContents
from tests.iceberg.drawn_views import DrawnView, draw_view, move
from tests.support.deep_tests import thinned
from tests.support.iceberg_readers import view_of

STEPS = 14


@pytest.mark.parametrize("seed", thinned(range(100), keep=5))
def test_masks_after_each_commit_are_those_of_a_whole_merge(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, open_catalog(str(tmp_path)), kinds=("deduplicate", "deduplicate", "first-row"))
    # With little memory, keys are searched where they are read.
    memory = rng.choice(["64 mb", "64 mb", "4 kb"])
    drawn.table = drawn.table.alter(SetOption("lookup.cache-max-memory-size", memory))
    # A process that stays open keeps keys and masks; others read them.
    stays = rng.random() < 0.7

    for _ in range(STEPS):
        done = move(drawn, rng) if stays else move(_opened_anew(drawn, tmp_path), rng)

        assert published_masks(drawn.table) == whole_masks(drawn.table), done


@pytest.mark.parametrize("seed", thinned(range(100), keep=8))
def test_masks_are_those_of_a_whole_merge_however_files_are_searched(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(1000 + seed)  # noqa: S311  chance, not cryptography
    sizes = [1, 10, 80, 400]
    if rng.random() < 0.4:
        # Keys with equal hashes, mostly of two files.
        sizes, span = [1, 5, 20], rng.choice([300, 3000, 30_000])
        hashes = coded_keys._hashes
        monkeypatch.setattr(coded_keys, "_hashes", lambda keys: hashes(keys) % span)
    types = [rng.choice([*KEYS, "BIGINT"]) for _ in range(rng.choice([1, 1, 1, 2]))]
    options = {
        "metadata.iceberg.storage": "table-location",
        "log.system": "none",
        "bucket": rng.choice(["1", "3"]),
        "write-only": rng.choice(["true", "true", "false"]),
        "num-sorted-run.compaction-trigger": rng.choice(["3", "5"]),
        # An index of some hundred rows, so that there are files beside it and before it, or of all.
        "lookup.cache-max-memory-size": rng.choice(["64 mb", "40 kb", "16 kb"]),
        "target-file-size": rng.choice(["128 mb", "4 kb"]),
    }
    keys = [f"k{place}" for place in range(len(types))]
    columns = {name: f"{of} NOT NULL" for name, of in zip(keys, types, strict=True)}
    table = open_catalog(str(tmp_path)).create_table("d.t", {**columns, "n": "INT"}, primary_key=keys, options=options)
    for step in range(20):
        done = rng.choice(["upsert", "upsert", "upsert", "changes", "delete", "compact", "reopen", "roll back"])
        writer = table if rng.random() < 0.8 else open_catalog(str(tmp_path)).load_table("d.t")
        if done == "compact":
            table.compact(full=rng.random() < 0.5)
        elif done == "reopen":
            table = open_catalog(str(tmp_path)).load_table("d.t")
        elif done == "delete":
            writer.delete(f"n < {step - rng.choice([2, 5, 9])}")
        elif done == "roll back" and (newest := table.context.file_store.snapshots.latest_id()) is not None:
            table.rollback_to(snapshot_id=max(1, newest - rng.randrange(4)))
        else:
            rows = {rng.randrange(-500, 500) for _ in range(rng.choice(sizes))}
            kinds = [rng.choice(["+I", "-D"]) if done == "changes" else "+I" for _ in rows]
            made = [{name: KEYS[of](row) for name, of in zip(keys, types, strict=True)} for row in sorted(rows)]
            writer.append([{**key, "n": step, "_row_kind": each} for key, each in zip(made, kinds, strict=True)])
        table = table.refresh()

        assert published_masks(table) == whole_masks(table), (step, done)


KEYS: dict[str, Callable[[int], Any]] = {
    "BIGINT": lambda number: number,
    "SMALLINT": lambda number: number,
    "DATE": lambda number: date(2026, 1, 1) + timedelta(days=number),
    "STRING": lambda number: f"key {number}",
    "BYTES": lambda number: str(number).encode(),
    "DECIMAL(30, 4)": lambda number: Decimal(number) / 100,
}


def _opened_anew(drawn: DrawnView, warehouse: Path) -> DrawnView:
    drawn.table = open_catalog(str(warehouse)).load_table("d.t")
    return drawn


def published_masks(table: DynamicTable) -> dict[str, BitMap64]:
    """Return the masks in the newest snapshot of the view, read from its files."""
    directory = view_of(table).directory
    newest = directory.newest()
    if newest is None or newest.current is None:
        return {}
    contents = ViewContents(directory, lambda: "")
    masks = KnownMasks(directory)
    found = {}
    for path, hiding in contents.read(newest.current.manifest_list).delete_files().items():
        mask = masks.of(hiding)
        assert mask is not None
        assert len(mask) == hiding.row_count
        found[path] = mask
    return found


def whole_masks(table: DynamicTable) -> dict[str, BitMap64]:
    """Return the masks of the newest snapshot's files, computed from all of their rows."""
    store = table.refresh().context.file_store
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return {}
    live = {store.path_of(entry): entry for entry in store.scan.entries(snapshot)}
    change = FileChange(live=live, added=frozenset(live), since=None, mask_before=lambda _: None)
    return {path: mask for path, mask in next_masks(store, change) if mask}
