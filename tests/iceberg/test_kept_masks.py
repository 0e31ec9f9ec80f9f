"""Masks that a view updates for added rows are those that a merge of all files gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyroaring import BitMap64

from storage_lib import DynamicTable, SetOption, open_catalog
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
