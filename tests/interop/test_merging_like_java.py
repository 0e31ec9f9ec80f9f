"""Paimon's Java core and this library merge the versions of a key to the same row, whichever of them merges."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, WarehouseCatalog
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS, RowKind
from tests.support.paimon_core import PaimonCore

IDENTIFIER = "db.t"
AGGREGATION = {"merge-engine": "aggregation", "write-only": "true"}
Change = tuple[RowKind, tuple[Any, ...]]
ADD, TAKE_BACK, DELETE = RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.DELETE


def make_table(home: Path, columns: dict[str, str], options: dict[str, str]) -> DynamicTable:
    catalog = WarehouseCatalog(str(home), {"log.system": "none"})
    return catalog.create_table(IDENTIFIER, {"k": "INT", **columns}, primary_key=["k"], options=options)


def put(table: DynamicTable, changes: Sequence[Change]) -> None:
    """Write changes in one commit."""
    rows = [pa.array([row[place] for _, row in changes], field.type) for place, field in enumerate(table.arrow_schema)]
    kinds = pa.array([ROW_KIND_SYMBOLS[kind] for kind, _ in changes])
    table.append(pa.table([*rows, kinds], names=[*table.arrow_schema.names, "_row_kind"]))


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=repr)


def rows_by_java(core: PaimonCore, home: Path, table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(core.read(home, IDENTIFIER, table.schema), key=repr)


@pytest.mark.parametrize("seed", range(2))
def test_decimals_are_multiplied_and_rounded_half_up_from_the_oldest_on(
    paimon_core: PaimonCore, tmp_path: Path, seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    table = make_table(
        tmp_path,
        {"small": "DECIMAL(9, 3)", "large": "DECIMAL(38, 4)"},
        {**AGGREGATION, "fields.default-aggregate-function": "product"},
    )
    for _ in range(6):
        keys = drawn.permutation(12)[:9].tolist()
        values = [Decimal(int(value)).scaleb(-3) for value in drawn.integers(-3000, 3000, len(keys))]
        put(
            table,
            [(ADD, (key, value if key % 4 else None, value * 7)) for key, value in zip(keys, values, strict=True)],
        )

    ours = rows_of(table)
    assert rows_by_java(paimon_core, tmp_path, table) == ours
    table.compact(full=True)
    assert rows_of(table) == ours == rows_by_java(paimon_core, tmp_path, table)


def test_a_decimal_is_taken_out_of_a_product_again(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = make_table(tmp_path, {"n": "DECIMAL(10, 2)"}, {**AGGREGATION, "fields.n.aggregate-function": "product"})
    for kind, key, value in [
        (ADD, 1, "2.50"),
        (ADD, 1, "-4.00"),
        (TAKE_BACK, 1, "2.50"),
        (ADD, 2, "1.00"),
        (TAKE_BACK, 2, "-8.00"),
        (ADD, 3, None),
        (TAKE_BACK, 3, "2.00"),
    ]:
        put(table, [(kind, (key, value and Decimal(value)))])

    assert rows_of(table) == [(1, Decimal("-4.00")), (2, Decimal("-0.13")), (3, None)]
    assert rows_by_java(paimon_core, tmp_path, table) == rows_of(table)


def test_a_product_that_its_decimal_can_not_hold_is_refused_where_java_makes_it_null(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    table = make_table(tmp_path, {"n": "DECIMAL(4, 2)"}, {**AGGREGATION, "fields.n.aggregate-function": "product"})
    put(table, [(ADD, (1, Decimal("50.00")))])
    put(table, [(ADD, (1, Decimal("2.00")))])

    assert rows_by_java(paimon_core, tmp_path, table) == [(1, None)]
    with pytest.raises(InvalidInputError, match=r"the product of column 'n' is too large for decimal128\(4, 2\)"):
        table.to_arrow()


GROUPS = {
    "merge-engine": "partial-update",
    "write-only": "true",
    "fields.g.sequence-group": "a,s",
    "fields.s.aggregate-function": "sum",
    "fields.h,i.sequence-group": "b",
}
GROUPED = {"b": "STRING", "h": "INT", "i": "INT", "a": "INT", "g": "INT", "s": "INT", "free": "INT"}


@pytest.mark.parametrize(("removing", "seed"), [("g", 0), ("h", 1), ("g,h", 2)])
def test_records_are_removed_by_the_sequences_of_their_groups(
    paimon_core: PaimonCore, tmp_path: Path, removing: str, seed: int
) -> None:
    options = {**GROUPS, "partial-update.remove-record-on-sequence-group": removing}
    table = make_table(tmp_path, GROUPED, options)
    drawn = np.random.default_rng(seed)
    key_count, commits = 40, 7
    was_removed = np.zeros(key_count, dtype=np.bool_)
    for turn in range(commits):
        changes: list[Change] = []
        for key in range(key_count):
            numbers = [None if drawn.random() < 0.2 else int(each) for each in drawn.integers(0, 2 + turn, 6)]
            # In Java a second deletion in a row brings the record back, which we do not reproduce.
            kind = DELETE if turn and drawn.random() < 0.35 and not was_removed[key] else ADD
            was_removed[key] = kind is DELETE
            changes.append((kind, (key, "text" if key % 2 else None, *numbers)))
        put(table, changes)

    ours = rows_of(table)
    assert 0 < len(ours) < key_count
    assert rows_by_java(paimon_core, tmp_path, table) == ours
    table.compact(full=True)
    assert rows_of(table) == ours == rows_by_java(paimon_core, tmp_path, table)


def test_a_record_that_was_removed_in_the_commit_that_begins_it_anew_is_gone_all_the_same(tmp_path: Path) -> None:
    options = {**GROUPS, "partial-update.remove-record-on-sequence-group": "g"}
    table = make_table(tmp_path, GROUPED, options)
    put(table, [(ADD, (1, "b", 1, 1, 1, 1, 1, 1))])
    put(table, [(DELETE, (1, None, None, None, None, 2, None, None)), (ADD, (1, None, None, None, 7, 3, None, None))])
    put(table, [(ADD, (1, None, None, None, 8, 1, None, None))])

    for _ in range(2):
        assert rows_of(table) == [(1, None, None, None, 7, 3, None, None)]
        table.compact(full=True)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [(4, -12, None, None), (5, 3, 8, 8), (6, 0, None, None), (7, -5, None, None)]),
        ({"aggregation.remove-record-on-delete": "true"}, [(5, 8, 8, 8), (7, -5, None, None), (8, -12, None, None)]),
    ],
    ids=["taking values back", "removing records"],
)
def test_a_key_that_was_only_taken_from_is_no_row_once_and_one_twice(
    paimon_core: PaimonCore, tmp_path: Path, more: dict[str, str], expected: list[tuple[Any, ...]]
) -> None:
    columns = {"total": "INT", "last": "INT", "set": "INT"}
    functions = {"total": "sum", "last": "last_value", "set": "last_non_null_value"}
    named = {f"fields.{column}.aggregate-function": function for column, function in functions.items()}
    table = make_table(tmp_path, columns, {**AGGREGATION, **named, **more})
    changes: list[tuple[RowKind, int, int | None]] = [
        (TAKE_BACK, 1, 5),
        (DELETE, 2, 5),
        (DELETE, 3, None),
        *([(TAKE_BACK, 4, 5), (DELETE, 4, 7)]),
        *([(DELETE, 5, None if more else 5), (ADD, 5, 8)]),
        *([(ADD, 6, 5), (DELETE, 6, 5)]),
        *([(TAKE_BACK, 7, 5), (ADD, 7, None)]),
        *([(TAKE_BACK, 8, 5), (TAKE_BACK, 8, 7)] if more else []),
    ]
    for kind, key, value in changes:
        put(table, [(kind, (key, value, value, value))])

    for _ in range(2):
        assert rows_of(table) == expected
        assert rows_by_java(paimon_core, tmp_path, table) == expected
        table.compact(full=True)


def test_what_is_only_taken_back_in_one_commit_is_a_row_too(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = make_table(tmp_path, {"n": "INT"}, {**AGGREGATION, "fields.n.aggregate-function": "sum"})
    put(table, [(TAKE_BACK, (1, 5)), (DELETE, (1, 7)), (DELETE, (2, 3))])

    assert rows_of(table) == rows_by_java(paimon_core, tmp_path, table) == [(1, -12)]
    put(table, [(ADD, (1, 20)), (ADD, (2, 20))])
    assert rows_of(table) == rows_by_java(paimon_core, tmp_path, table) == [(1, 8), (2, 17)]


def test_a_divisor_that_rounds_to_nothing_is_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"n": "DECIMAL(4, 2)"}, {**AGGREGATION, "fields.n.aggregate-function": "product"})
    put(table, [(ADD, (1, Decimal("1.00")))])
    for _ in range(2):
        put(table, [(TAKE_BACK, (1, Decimal("0.01")))])

    with pytest.raises(InvalidInputError, match=r"comes to 0 when it is rounded .*Give the column a greater scale"):
        table.to_arrow()
    with pytest.raises(InvalidInputError, match="a row of kind -U or -D has 0 in column 'n'"):
        put(table, [(TAKE_BACK, (1, Decimal("0.00")))])


def test_a_product_of_decimals_that_are_never_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"product is for numbers that may be 1 .* column 'n' is DECIMAL\(2, 2\)"
    ):
        make_table(tmp_path, {"n": "DECIMAL(2, 2)"}, {**AGGREGATION, "fields.n.aggregate-function": "product"})


def test_a_sequence_group_collects_in_the_order_of_arrival(paimon_core: PaimonCore, tmp_path: Path) -> None:
    options = {
        "merge-engine": "partial-update",
        "write-only": "true",
        "fields.g.sequence-group": "d",
        "fields.d.aggregate-function": "collect",
    }
    table = make_table(tmp_path, {"g": "INT", "d": "ARRAY<INT>"}, options)
    for sequence, element in [(80, 1), (26, 2), (50, 3), (90, 4)]:
        put(table, [(ADD, (1, sequence, [element])), (ADD, (2, sequence, [element]))])

    expected = [(key, 90, [1, 2, 3, 4]) for key in (1, 2)]
    assert rows_by_java(paimon_core, tmp_path, table) == rows_of(table) == expected
    table.compact(full=True)
    assert rows_by_java(paimon_core, tmp_path, table) == rows_of(table) == expected


def test_two_retractions_of_one_commit_leave_a_column_that_ignores_them(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    functions = {"fields.a.aggregate-function": "last_value", "fields.s.aggregate-function": "sum"}
    options = {**AGGREGATION, **functions, "fields.a.ignore-retract": "true"}
    table = make_table(tmp_path, {"a": "STRING", "s": "INT"}, options)
    put(table, [(ADD, (1, "tea", 10)), (ADD, (2, "milk", 5))])
    put(
        table,
        [(TAKE_BACK, (1, "tea", 1)), (DELETE, (1, "tea", 2)), (TAKE_BACK, (3, "rum", 4)), (DELETE, (3, "rum", 1))],
    )

    ours = rows_of(table)
    assert ours[:2] == [(1, "tea", 7), (2, "milk", 5)]
    assert rows_by_java(paimon_core, tmp_path, table) == ours
    table.compact(full=True)
    assert rows_by_java(paimon_core, tmp_path, table) == rows_of(table) == ours
