"""However a history is split into flushes, runs and compactions, each engine agrees with a plain model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import (
    CompactionStrategy,
    CompactionUnit,
    unit_of_newest,
)
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.key_intervals import intervals_of
from storage_lib.file_store.merge_tree.compaction.universal_compaction import UniversalCompaction
from storage_lib.file_store.merge_tree.compaction.whole_bucket import WholeBucketWithDeletes
from storage_lib.file_store.merge_tree.levels import Levels
from storage_lib.file_store.merge_tree.merge_function.deduplicate import Deduplicate
from storage_lib.file_store.merge_tree.merge_function.first_row import FirstRow
from storage_lib.file_store.merge_tree.merge_function.merge_engine import merge_function_of
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.format.parquet_format import ParquetFormat
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.fake_environment import fake_environment

Row: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[RowKind, Row]
Model: TypeAlias = Callable[[Sequence[Change]], Row | None]
"""Computes the row that results from all changes of one key, in order of arrival; None for no row."""

ADDS = [RowKind.INSERT, RowKind.UPDATE_AFTER]

LAWS = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass(frozen=True)
class _Compaction:
    """A strategy that can keep deletions, as if older versions existed below."""

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
    takes_back_rows: bool = False,
    unordered: tuple[int, ...] = (),
) -> None:
    """Write random changes in random commits and compactions; compare. ``columns`` begin with the key ``k``."""
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
    standing: dict[Any, list[Row]] = {}
    for drawn in commits:
        changes = [_after_an_addition(kind, row, history, merge_function) for kind, row in drawn]
        if takes_back_rows:
            changes = _of_a_changelog(changes, standing, history)
        bucket.commit([row for _, row in changes], [kind for kind, _ in changes])
        action = data.draw(st.sampled_from(["leave", "leave", "full", "universal"]))
        if action == "full":
            bucket.compact(_Compaction(FullCompaction(), drops_deletes=drops_deletes))
        elif action == "universal":
            strategy = WholeBucketWithDeletes(strategy=UniversalCompaction(compaction_trigger=2))
            bucket.compact(_Compaction(strategy, drops_deletes=drops_deletes))

    merged = [model(changes) for _, changes in sorted(history.items())]
    expected = [row for row in merged if row is not None]
    assert [_told(row, unordered) for row in bucket.rows(ordered=True)] == [_told(row, unordered) for row in expected]


def _told(row: Row, unordered: tuple[int, ...]) -> Row:
    """Return the row with the arrays at ``unordered`` positions sorted."""
    return tuple(sorted(map(str, v)) if place in unordered and v else v for place, v in enumerate(row))


def _after_an_addition(
    kind: RowKind, row: Row, history: dict[Any, list[Change]], merge_function: MergeFunction
) -> Change:
    """Make the first change of a key an addition, so that nothing is retracted before it was added."""
    earlier = history.setdefault(row[0], [])
    if not merge_function.keeps_newest and not earlier and not isinstance(merge_function, Deduplicate):
        kind = RowKind.INSERT
    earlier.append((kind, row))
    return kind, row


def _of_a_changelog(
    changes: Sequence[Change], standing: dict[Any, list[Row]], history: dict[Any, list[Change]]
) -> list[Change]:
    """Replace retractions by ones of existing rows, as in a changelog, or by additions if the key has none."""
    told = []
    for kind, row in changes:
        rows = standing.setdefault(row[0], [])
        change = (kind, rows.pop(0)) if kind.is_retract and rows else (RowKind.INSERT, row)
        if not change[0].is_retract:
            rows.append(row)
        told.append(change)
    for key in {row[0] for _, row in told}:
        earlier = history[key][: len(history[key]) - sum(row[0] == key for _, row in told)]
        history[key] = [*earlier, *(change for change in told if change[1][0] == key)]
    return told


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

    # A deletion that a compaction has dropped can no longer hide a late row.
    model = _newest_by_sequence_field(1, descending=descending)
    _check_laws(data, "k BIGINT; at INT; v INT", function, change, model, drops_deletes=False)


@pytest.mark.parametrize("descending", [False, True])
def test_of_equal_sequence_fields_the_later_row_wins_before_and_after_a_compaction(*, descending: bool) -> None:
    function = Deduplicate(order=SequenceOrder(fields=("at",), descending=descending))
    bucket = BucketOnDisk(schema_of("k BIGINT; at INT; v INT", ["k"]), fake_environment(), merge_function=function)
    bucket.commit([(1, 5, 1), (2, 5, 1), (2, 5, 2)])
    bucket.commit([(1, 5, 2)])
    later = [(1, 5, 2), (2, 5, 2)]

    assert bucket.rows(ordered=True) == later
    assert bucket.compact(FullCompaction())
    assert bucket.rows(ordered=True) == later


@LAWS
@given(data=st.data())
def test_the_first_row_of_a_key_stays(data: st.DataObject) -> None:
    change = st.tuples(st.sampled_from(ADDS), st.tuples(st.integers(0, 5), st.integers(0, 99)))

    _check_laws(data, "k BIGINT; v INT", FirstRow(table="t"), change, lambda changes: changes[0][1])


COLUMNS = (
    "k BIGINT; total INT; counted BIGINT; multiplied BIGINT; last INT; last_set STRING; greatest STRING; least DOUBLE; "
    "wide DECIMAL(20, 2); first INT; first_set INT; all_true BOOLEAN; any_true BOOLEAN; list STRING; parts STRING"
)
FUNCTIONS = {
    "total": "sum",
    "counted": "count",
    "multiplied": "product",
    "last": "last_value",
    "greatest": "max",
    "least": "min",
    "wide": "sum",
    "first": "first_value",
    "first_set": "first_non_null_value",
    "all_true": "bool_and",
    "any_true": "bool_or",
    "list": "listagg",
    "parts": "listagg",
}
TAKES_BACK = ("total", "counted", "multiplied", "last", "last_set", "wide")
NUMBER = st.none() | st.integers(-3, 3)
WORD = st.none() | st.sampled_from(["a", "b", "\u00e9", "a;b"])
WIDE = st.none() | st.integers(-(10**12), 10**12).map(lambda cents: Decimal(cents).scaleb(-2))
FLAG = st.none() | st.booleans()
HALF = NUMBER.map(lambda number: None if number is None else number / 2)


def _any_values(factors: Sequence[int]) -> st.SearchStrategy[Row]:
    factor = st.none() | st.sampled_from(factors)
    numbers = (NUMBER, NUMBER, factor, NUMBER)
    return st.tuples(st.integers(0, 3), *numbers, WORD, WORD, HALF, WIDE, NUMBER, NUMBER, FLAG, FLAG, WORD, WORD)


def _function_of(columns: str, options: dict[str, str]) -> MergeFunction:
    return merge_function_of("t", schema_of(columns, ["k"]), TableOptions.parse(options))


AGGREGATION = {
    "merge-engine": "aggregation",
    "fields.parts.list-agg-delimiter": ";",
    "fields.parts.distinct": "true",
    **{f"fields.{name}.aggregate-function": function for name, function in FUNCTIONS.items()},
    **{f"fields.{name}.ignore-retract": "true" for name in FUNCTIONS if name not in TAKES_BACK},
}


def _aggregated(changes: Sequence[Change]) -> Row | None:
    added = [row for kind, row in changes if not kind.is_retract]
    taken = [row for kind, row in changes if kind.is_retract]
    if not added:
        return None

    def values(place: int, rows: Sequence[Row] = added) -> list[Any]:
        return [row[place] for row in rows if row[place] is not None]

    def total(place: int) -> Any:
        if not values(place) and not values(place, taken):
            return None
        return sum(values(place)) - sum(values(place, taken))

    product = math.prod(values(3)) / math.prod(values(3, taken)) if values(3) else None
    last_kind, last_row = changes[-1]
    last_set = None
    for kind, row in changes:
        if row[5] is not None:
            last_set = None if kind.is_retract else row[5]
    parts = dict.fromkeys(part for text in values(14) for part in text.split(";"))
    return (
        added[0][0],
        total(1),
        len(values(2)) - len(values(2, taken)),
        None if product is None else math.trunc(product),
        None if last_kind.is_retract else last_row[4],
        last_set,
        max(values(6), default=None),
        min(values(7), default=None),
        total(8),
        added[0][9],
        next(iter(values(10)), None),
        all(values(11)) if values(11) else None,
        any(values(12)) if values(12) else None,
        ",".join(values(13)) if values(13) else None,
        ";".join(parts) if parts else None,
    )


@LAWS
@given(data=st.data())
def test_every_column_is_aggregated_by_its_function(data: st.DataObject) -> None:
    change = st.tuples(st.sampled_from(ADDS), _any_values([-2, -1, 1, 3]))

    _check_laws(data, COLUMNS, _function_of(COLUMNS, AGGREGATION), change, _aggregated)


@LAWS
@given(data=st.data())
def test_what_was_added_is_taken_back_whenever_it_is_merged(data: st.DataObject) -> None:
    change = st.tuples(st.sampled_from(list(RowKind)), _any_values([-2, -1, 1, 3]))

    _check_laws(data, COLUMNS, _function_of(COLUMNS, AGGREGATION), change, _aggregated, takes_back_rows=True)


@LAWS
@given(data=st.data())
def test_decimals_without_digits_behind_the_point_are_multiplied_exactly(data: st.DataObject) -> None:
    columns = "k BIGINT; factor DECIMAL(38, 0)"
    options = {"merge-engine": "aggregation", "fields.factor.aggregate-function": "product"}
    factor = st.none() | st.sampled_from([-3, -1, 1, 2, 5]).map(Decimal)
    change = st.tuples(st.sampled_from(list(RowKind)), st.tuples(st.integers(0, 3), factor))

    def model(changes: Sequence[Change]) -> Row | None:
        added = [row for kind, row in changes if not kind.is_retract]
        factors = [row[1] for row in added if row[1] is not None]
        taken = [row[1] for kind, row in changes if kind.is_retract and row[1] is not None]
        product = Decimal(math.prod(map(int, factors)) // math.prod(map(int, taken))) if factors else None
        return (added[0][0], product) if added else None

    _check_laws(data, columns, _function_of(columns, options), change, model, takes_back_rows=True)


@LAWS
@given(data=st.data(), engine=st.sampled_from(["aggregation", "partial-update"]))
def test_a_deletion_removes_the_whole_record_and_a_new_one_begins(data: st.DataObject, engine: str) -> None:
    columns = "k BIGINT; v INT; w INT NOT NULL"
    options = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"}
    change = st.tuples(
        st.sampled_from([*ADDS, RowKind.DELETE]), st.tuples(st.integers(0, 3), NUMBER, st.integers(0, 99))
    )

    def model(changes: Sequence[Change]) -> Row | None:
        last = max((place for place, (kind, _) in enumerate(changes) if kind is RowKind.DELETE), default=-1)
        return _last_set([row for _, row in changes[last + 1 :]])

    _check_laws(data, columns, _function_of(columns, options), change, model)


def _last_set(rows: Sequence[Row]) -> Row | None:
    if not rows:
        return None
    merged = list(rows[0])
    for row in rows:
        merged = [old if new is None else new for old, new in zip(merged, row, strict=True)]
    return tuple(merged)


@LAWS
@given(data=st.data())
def test_each_column_keeps_its_newest_value_that_is_not_null(data: st.DataObject) -> None:
    columns = "k BIGINT; v INT; w STRING; x INT NOT NULL"
    change = st.tuples(st.sampled_from(ADDS), st.tuples(st.integers(0, 3), NUMBER, WORD, st.integers(0, 9)))

    _check_laws(
        data,
        columns,
        _function_of(columns, {"merge-engine": "partial-update"}),
        change,
        lambda changes: _last_set([row for _, row in changes]),
    )


GROUPED = "k BIGINT; a INT; b STRING; g INT; total INT; greatest INT; h INT; i INT; free INT"
GROUPS = {
    "merge-engine": "partial-update",
    "fields.g.sequence-group": "a,b",
    "fields.h,i.sequence-group": "total,greatest",
    "fields.total.aggregate-function": "sum",
    "fields.greatest.aggregate-function": "max",
    "fields.greatest.ignore-retract": "true",
}


def _grouped(changes: Sequence[Change]) -> Row | None:
    added = [row for kind, row in changes if not kind.is_retract]
    if not added:
        return None
    if len(changes) == 1:
        return added[0]
    a = b = g = h = i = None
    first = sorted((c for c in changes if c[1][3] is not None), key=lambda change: change[1][3])
    if first:
        kind, newest = first[-1]
        a, b = (None, None) if kind.is_retract else newest[1:3]
        g = newest[3]
    spoken = [change for change in changes if change[1][6:8] != (None, None)]
    if spoken:
        h, i = max((row[6:8] for _, row in spoken), key=lambda pair: [(v is not None, v or 0) for v in pair])
    signed = [-row[4] if kind.is_retract else row[4] for kind, row in spoken if row[4] is not None]
    greatest = [row[5] for kind, row in spoken if row[5] is not None and not kind.is_retract]
    free = [row[8] for row in added if row[8] is not None]
    return (
        added[0][0],
        a,
        b,
        g,
        sum(signed) if signed else None,
        max(greatest, default=None),
        h,
        i,
        free[-1] if free else None,
    )


@LAWS
@given(data=st.data(), kinds=st.sampled_from([ADDS, list(RowKind)]))
def test_a_sequence_group_is_updated_by_its_greatest_sequence(data: st.DataObject, kinds: list[RowKind]) -> None:
    numbers = [NUMBER, WORD, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER]
    change = st.tuples(st.sampled_from(kinds), st.tuples(st.integers(0, 3), *numbers))

    _check_laws(data, GROUPED, _function_of(GROUPED, GROUPS), change, _grouped)


@LAWS
@given(data=st.data())
def test_a_deletion_of_the_newest_sequence_removes_the_record_and_a_new_one_begins(data: st.DataObject) -> None:
    columns = "k BIGINT; g INT; a INT; b STRING"
    options = {
        "merge-engine": "partial-update",
        "fields.g.sequence-group": "a,b",
        "partial-update.remove-record-on-sequence-group": "g",
    }
    # A late row would reveal whether a compaction has dropped the deletion, so no row is late.
    row = st.tuples(st.integers(0, 3), st.just(1), NUMBER, WORD)
    no_sequence = st.tuples(st.integers(0, 3), st.none(), NUMBER, WORD)
    change = st.tuples(st.sampled_from(ADDS), row) | st.tuples(st.just(RowKind.DELETE), row | no_sequence)

    def model(changes: Sequence[Change]) -> Row | None:
        merged: Row | None = None
        if len(changes) == 1:
            return changes[0][1]  # nothing is merged, so that it stays as it was written
        for kind, row in changes:
            if row[1] is not None:
                merged = None if kind.is_retract else row
            elif not kind.is_retract:
                merged = (row[0], None, None, None)
        return merged

    _check_laws(data, columns, _function_of(columns, options), change, model)


COLLECTED = "k BIGINT; bag ARRAY<STRING>; members ARRAY<INT>; properties MAP<STRING, INT>; n INT NOT NULL"
COLLECTION = {
    "merge-engine": "aggregation",
    "fields.bag.aggregate-function": "collect",
    "fields.members.aggregate-function": "collect",
    "fields.members.distinct": "true",
    "fields.properties.aggregate-function": "merge_map",
    "fields.n.aggregate-function": "sum",
}


def _collected(changes: Sequence[Change]) -> Row | None:
    added = [row for kind, row in changes if not kind.is_retract]
    if not added:
        return None
    taken: Counter[str | None] = Counter()
    members: dict[int | None, None] = {}
    properties: dict[str, int | None] = {}
    for kind, (_, bag, some, more, _) in changes:
        if kind.is_retract:
            taken.update(bag or [])
            members = {member: None for member in members if member not in (some or [])}
            properties = {name: value for name, value in properties.items() if name not in dict(more or [])}
        else:
            members |= dict.fromkeys(some or [])
            for name, value in more or []:
                properties.pop(name, None)
                properties[name] = value
    left: list[str | None] = []
    for element in reversed([element for row in added for element in row[1] or []]):
        if taken[element]:
            taken[element] -= 1
        else:
            left.append(element)
    total = sum(-row[4] if kind.is_retract else row[4] for kind, row in changes)
    return (
        added[0][0],
        left[::-1] if any(row[1] is not None for row in added) else None,
        list(members) if any(row[2] is not None for row in added) else None,
        list(properties.items()) if any(row[3] is not None for row in added) else None,
        total,
    )


@LAWS
@given(data=st.data(), kinds=st.sampled_from([ADDS, [*ADDS, RowKind.DELETE]]))
def test_arrays_and_maps_are_collected_and_taken_back(data: st.DataObject, kinds: list[RowKind]) -> None:
    entries = st.lists(st.tuples(st.sampled_from("xyz"), NUMBER), max_size=3, unique_by=lambda entry: entry[0])
    row = st.tuples(
        st.integers(0, 2),
        st.none() | st.lists(st.none() | st.sampled_from("ab"), max_size=3),
        st.none() | st.lists(NUMBER, max_size=3),
        st.none() | entries,
        st.integers(0, 9),
    )

    change = st.tuples(st.sampled_from(kinds), row)
    function = _function_of(COLLECTED, COLLECTION)
    _check_laws(data, COLLECTED, function, change, _collected, takes_back_rows=True, unordered=(1, 2))


@dataclass(frozen=True)
class _NewestTwoRuns:
    def pick(self, levels: Levels) -> CompactionUnit | None:
        return unit_of_newest(levels, 2)


def test_a_compaction_of_some_runs_forgets_no_deletion_that_a_new_row_followed() -> None:
    columns = "k BIGINT; v INT; w INT"
    options = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    bucket = BucketOnDisk(schema_of(columns, ["k"]), fake_environment(), merge_function=_function_of(columns, options))
    bucket.commit([(1, 1, 1)])
    bucket.compact(FullCompaction())
    bucket.commit([(1, 1, 1)], [RowKind.DELETE])
    bucket.commit([(1, None, 2)])

    bucket.compact(WholeBucketWithDeletes(strategy=_NewestTwoRuns()))

    assert bucket.rows() == [(1, None, 2)]
