"""However changes are cut into commits, and whatever is compacted between them, the rows are the same.

The reference is the history with one commit for each change and no compaction: there only the final merge of a read
sees two versions at once. So the test needs no model of an engine, and holds for each function with its options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.universal_compaction import UniversalCompaction
from storage_lib.file_store.merge_tree.compaction.whole_bucket import WholeBucketWithDeletes
from storage_lib.file_store.merge_tree.merge_function.merge_engine import merge_function_of
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.types.row_kind import RowKind
from tests.support.bucket_on_disk import BucketOnDisk, schema_of
from tests.support.deep_tests import crossed
from tests.support.fake_environment import fake_environment

Row: TypeAlias = tuple[int, int, Any, int]
"""The key, the sequence, a value of the function under test and a number that is summed or kept."""
Change: TypeAlias = tuple[RowKind, Row]

NUMBERS = st.integers(-3, 3)
FACTORS = st.sampled_from([-2, -1, 1, 3])
WORDS = st.sampled_from(["a", "b", "c"])
FUNCTIONS: Mapping[str, tuple[str, st.SearchStrategy[Any]]] = {
    "sum": ("INT", NUMBERS),
    "count": ("BIGINT", NUMBERS),
    "product": ("BIGINT", FACTORS),
    "max": ("INT", NUMBERS),
    "min": ("DOUBLE", NUMBERS.map(float)),
    "last_value": ("STRING", WORDS),
    "last_non_null_value": ("STRING", WORDS),
    "first_value": ("STRING", WORDS),
    "first_non_null_value": ("STRING", WORDS),
    "bool_and": ("BOOLEAN", st.booleans()),
    "bool_or": ("BOOLEAN", st.booleans()),
    "listagg": ("STRING", WORDS),
    "collect": ("ARRAY<INT>", st.lists(NUMBERS, max_size=2)),
    "merge_map": ("MAP<STRING, INT>", st.dictionaries(WORDS, NUMBERS, max_size=2).map(lambda map_: [*map_.items()])),
}
"""Aggregate functions with a type, and values that all can be retracted again."""
ALWAYS_IGNORES = frozenset({"max", "min", "first_value", "first_non_null_value", "bool_and", "bool_or", "listagg"})
# Without partial-update.remove-record-on-sequence-group: as in Paimon's Java core, a recreated record starts from the
# row of its deletion until a compaction has dropped that.
ENGINES: Mapping[str, Mapping[str, str]] = {
    "aggregation": {},
    "aggregation in order": {"sequence.field": "at"},
    "aggregation that removes": {"aggregation.remove-record-on-delete": "true"},
    "partial-update": {"fields.at.sequence-group": "v,n"},
}


@dataclass(frozen=True, kw_only=True)
class _Table:
    columns: str
    options: Mapping[str, str]
    removes: bool = False
    takes_only_standing_rows: bool = False

    def bucket(self, *, memtable_bytes_max: int = 10**9) -> BucketOnDisk:
        schema = schema_of(self.columns, ["k"])
        return BucketOnDisk(
            schema,
            fake_environment(),
            memtable_bytes_max=memtable_bytes_max,
            merge_function=merge_function_of("t", schema, TableOptions.parse(dict(self.options))),
        )


def _table(data: st.DataObject, function: str, engine: str) -> _Table:
    ignores = function in ALWAYS_IGNORES or data.draw(st.booleans())
    if function == "product" and engine == "aggregation that removes":
        ignores = True
    not_null = data.draw(st.sampled_from(["", " NOT NULL"]))
    return _Table(
        columns=f"k INT; at INT; v {FUNCTIONS[function][0]}{not_null}; n INT",
        options={
            "merge-engine": engine.split(maxsplit=1)[0],
            "fields.v.aggregate-function": function,
            "fields.n.aggregate-function": "sum",
            **({"fields.v.ignore-retract": "true"} if ignores else {}),
            **ENGINES[engine],
        },
        removes="removes" in engine,
        # A retraction that was not added before is no changelog: what it leaves depends on the compactions.
        takes_only_standing_rows=not ignores,
    )


def _history(data: st.DataObject, table: _Table, values: st.SearchStrategy[Any]) -> list[Change]:
    """Draw changes in which the first of a record adds, and the sequence never falls."""
    value = values if "NOT NULL" in table.columns else st.none() | values
    standing: dict[int, list[Row]] = {}
    changes: list[Change] = []
    for at in range(data.draw(st.integers(2, 12))):
        key = data.draw(st.sampled_from([0, 0, 0, 1]))
        kind = data.draw(st.sampled_from([*RowKind, RowKind.UPDATE_BEFORE]))
        row = (key, at, data.draw(value), data.draw(NUMBERS))
        rows = standing.setdefault(key, [])
        if kind.is_retract and not rows:
            kind = RowKind.INSERT
        if not kind.is_retract:
            rows.append(row)
        else:
            place = data.draw(st.integers(0, len(rows) - 1))
            taken = rows.pop(place) if len(rows) > 1 or table.takes_only_standing_rows else rows[place]
            row = (key, at, taken[2] if table.takes_only_standing_rows else row[2], taken[3])
            if table.removes and kind is RowKind.DELETE:
                rows.clear()
        changes.append((kind, row))
    return changes


def _rows(bucket: BucketOnDisk, changes: Sequence[Change]) -> list[Any]:
    last = {row[0]: kind for kind, row in changes}
    # Of a key whose newest version retracts, the sequence is not defined: Paimon's Java core sets it to null only where
    # the final merge sees the retraction.
    return [
        repr((k, None if last[k].is_retract else at, sorted(v) if isinstance(v, list) else v, n))
        for k, at, v, n in bucket.rows(ordered=True)
    ]


def _check(data: st.DataObject, table: _Table, values: st.SearchStrategy[Any]) -> None:
    changes = _history(data, table, values)
    one_each = table.bucket()
    for kind, row in changes:
        one_each.commit([row], [kind])
    cut = table.bucket(memtable_bytes_max=data.draw(st.sampled_from([1, 10**9, 10**9])))
    rest = changes
    while rest:
        count = data.draw(st.integers(1, 4))
        cut.commit([row for _, row in rest[:count]], [kind for kind, _ in rest[:count]])
        rest = rest[count:]
        match data.draw(st.sampled_from(["leave", "full", "some"])):
            case "full":
                cut.compact(FullCompaction())
            case "some":
                cut.compact(WholeBucketWithDeletes(strategy=UniversalCompaction(compaction_trigger=2)))

    assert _rows(cut, changes) == _rows(one_each, changes)


@pytest.mark.parametrize(("function", "engine"), crossed(FUNCTIONS, ENGINES))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_do_not_depend_on_how_changes_are_cut_into_commits(
    data: st.DataObject, function: str, engine: str
) -> None:
    _check(data, _table(data, function, engine), FUNCTIONS[function][1])
