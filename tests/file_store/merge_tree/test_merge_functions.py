"""However a history is split into flushes, runs and compactions, each engine says what a plain model says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy, CompactionUnit
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.key_intervals import intervals_of
from storage_lib.file_store.merge_tree.compaction.universal_compaction import UniversalCompaction
from storage_lib.file_store.merge_tree.levels import Levels
from storage_lib.file_store.merge_tree.merge_function.deduplicate import Deduplicate
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.fake_environment import fake_environment

Row: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[RowKind, Row]
Model: TypeAlias = Callable[[Sequence[Change]], Row | None]
"""What all changes of one key, in the order of their arrival, leave of it."""

LAWS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class _Compaction:
    """A strategy that may be told to keep deletions, as if there were something older below."""

    strategy: CompactionStrategy
    drops_deletes: bool

    def pick(self, levels: Levels) -> CompactionUnit | None:
        unit = self.strategy.pick(levels)
        if unit is None or self.drops_deletes:
            return unit
        return replace(unit, older_keys=intervals_of(unit.files))


def _check_laws(
    data: st.DataObject,
    columns: str,
    merge_function: MergeFunction,
    change: st.SearchStrategy[Change],
    model: Model,
    *,
    drops_deletes: bool = True,
) -> None:
    """Write drawn changes (``columns`` begin with the key ``k``) in drawn commits and compactions; compare."""
    commits = data.draw(st.lists(st.lists(change, min_size=1, max_size=8), min_size=1, max_size=6))
    bucket = BucketOnDisk(
        schema_of(columns, ["k"]),
        fake_environment(),
        target_file_size=data.draw(st.sampled_from([1, 10**9])),
        memtable_bytes_max=data.draw(st.sampled_from([100, 10**9])),
        merge_bytes_max=data.draw(st.sampled_from([1, 200, 10**9])),
        file_format=ParquetFormat(row_group_rows_max=data.draw(st.integers(1, 5))),
        merge_function=merge_function,
    )
    history: dict[Any, list[Change]] = {}
    for changes in commits:
        for kind, row in changes:
            history.setdefault(row[0], []).append((kind, row))
        bucket.commit([row for _, row in changes], [kind for kind, _ in changes])
        action = data.draw(st.sampled_from(["leave", "leave", "full", "universal"]))
        if action == "full":
            bucket.compact(_Compaction(FullCompaction(), drops_deletes=drops_deletes))
        elif action == "universal":
            bucket.compact(_Compaction(UniversalCompaction(compaction_trigger=2), drops_deletes=drops_deletes))

    merged = [model(changes) for _, changes in sorted(history.items())]
    assert bucket.rows(ordered=True) == [row for row in merged if row is not None]


def _newest_by_sequence_field(field: int, *, descending: bool) -> Model:
    def model(changes: Sequence[Change]) -> Row | None:
        newest: Change | None = None
        for change in changes:
            if newest is None or _is_not_older(change[1][field], newest[1][field], descending=descending):
                newest = change
        return None if newest is None or newest[0].is_retract else newest[1]

    return model


def _is_not_older(value: int | None, other: int | None, *, descending: bool) -> bool:
    if value is None or other is None:
        return other is None
    return value <= other if descending else value >= other


@LAWS
@given(data=st.data(), descending=st.booleans())
def test_the_version_with_the_newest_sequence_field_is_the_row(data: st.DataObject, *, descending: bool) -> None:
    change = st.tuples(
        st.sampled_from([RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE]),
        st.tuples(st.integers(0, 5), st.none() | st.integers(0, 3), st.integers(0, 99)),
    )
    function = Deduplicate(order=SequenceOrder(fields=("at",), descending=descending))

    # A deletion that a compaction has dropped can't hide a row any more that comes too late.
    model = _newest_by_sequence_field(1, descending=descending)
    _check_laws(data, "k BIGINT; at INT; v INT", function, change, model, drops_deletes=False)
