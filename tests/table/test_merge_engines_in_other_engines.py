"""Tables of every merge engine, read by independent programs, and theirs read by this library.

They refuse unsupported tables: pypaimon 2.1 refuses retractions and sequence groups, both refuse the function
``count``. They show first-row tables only after a compaction, since they skip level 0 then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.table.dynamic_table import DynamicTable
from tests.support.other_readers import (
    append_with_pypaimon,
    append_with_rust,
    create_with_pypaimon,
    needs_pypaimon,
    read_with_pypaimon,
    read_with_rust,
)

pytestmark = [needs_pypaimon, pytest.mark.integration]

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("name", pa.string()), ("at", pa.int32())])
FIRST_ROW = {"merge-engine": "first-row"}
PARTIAL_UPDATE = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}

READ_BY_BOTH: dict[str, dict[str, str]] = {
    "sequence.field": {"sequence.field": "at"},
    "sequence.field, descending": {"sequence.field": "at", "sequence.field.sort-order": "descending"},
    "partial-update": PARTIAL_UPDATE,
    "partial-update with sequence.field": {**PARTIAL_UPDATE, "sequence.field": "at"},
    "aggregation": {
        **AGGREGATION,
        "fields.n.aggregate-function": "sum",
        "fields.name.aggregate-function": "listagg",
        "fields.name.distinct": "true",
        "fields.at.aggregate-function": "max",
    },
    "aggregation by default": {**AGGREGATION, "fields.default-aggregate-function": "first_value"},
    "products": {**AGGREGATION, "fields.n.aggregate-function": "product", "fields.at.aggregate-function": "min"},
}
READ_BY_RUST: dict[str, dict[str, str]] = {
    "sums taken back": {**AGGREGATION, "fields.n.aggregate-function": "sum"},
    "records removed": {**PARTIAL_UPDATE, "partial-update.remove-record-on-delete": "true"},
    "aggregates removed": {**AGGREGATION, "aggregation.remove-record-on-delete": "true"},
    "a sequence group": {
        **PARTIAL_UPDATE,
        "fields.at.sequence-group": "n,name",
        "fields.n.aggregate-function": "sum",
    },
}


def _rows(*rows: Sequence[Any]) -> pa.Table:
    """Convert rows of ``(kind, id, n, name, at)`` to Arrow."""
    kinds, *columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)]
    return pa.table([*arrays, pa.array(kinds)], names=[*COLUMNS.names, "_row_kind"])


def _table(warehouse: Path, options: dict[str, str]) -> DynamicTable:
    catalog = WarehouseCatalog(str(warehouse))
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"], options={"write-only": "true", **options})
    table.append(_rows(("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1), ("+I", 4, 1, "y", 1)))
    table.append(_rows(("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1)))
    table.append(_rows(("+I", 1, None, "z", 2), ("+I", 3, 7, "c", None)))
    return table


def _sorted(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in COLUMNS.names) for row in rows.to_pylist()), key=repr)


@pytest.mark.parametrize("engine", READ_BY_BOTH)
def test_our_tables_are_read_alike_by_all(tmp_path: Path, engine: str) -> None:
    table = _table(tmp_path, READ_BY_BOTH[engine])

    ours = _sorted(table.to_arrow())
    assert _sorted(read_with_rust(tmp_path, "db.t")) == ours
    assert _sorted(read_with_pypaimon(tmp_path, "db.t", tmp_path)) == ours
    table.compact()
    assert _sorted(table.to_arrow()) == ours
    assert _sorted(read_with_rust(tmp_path, "db.t")) == ours


@pytest.mark.parametrize("engine", READ_BY_RUST)
def test_what_is_taken_back_is_so_for_others_too(tmp_path: Path, engine: str) -> None:
    table = _table(tmp_path, READ_BY_RUST[engine])
    table.append(_rows(("-D", 1, 2, "z", 9), ("-D", 4, 1, "y", 1), ("+I", 4, 3, None, 2)))

    ours = _sorted(table.to_arrow())
    assert _sorted(read_with_rust(tmp_path, "db.t")) == ours
    table.compact()
    assert _sorted(table.to_arrow()) == ours
    assert _sorted(read_with_rust(tmp_path, "db.t")) == ours


def test_others_show_first_rows_after_a_compaction(tmp_path: Path) -> None:
    table = _table(tmp_path, FIRST_ROW)
    ours = _sorted(table.to_arrow())
    assert _sorted(read_with_rust(tmp_path, "db.t")) == []

    table.compact()

    assert _sorted(table.to_arrow()) == ours
    assert _sorted(read_with_rust(tmp_path, "db.t")) == ours


def test_a_count_is_refused_by_others_rather_than_counted_again(tmp_path: Path) -> None:
    _table(tmp_path, {**AGGREGATION, "fields.n.aggregate-function": "count"})

    with pytest.raises(ValueError, match="Unknown aggregate function 'count'"):
        read_with_rust(tmp_path, "db.t")
    with pytest.raises(AssertionError, match="does not yet implement"):
        read_with_pypaimon(tmp_path, "db.t", tmp_path)


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_a_table_of_theirs_is_read_and_gone_on_with_by_us(tmp_path: Path, engine: str) -> None:
    first = _rows(("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1)).select(COLUMNS.names)
    second = _rows(("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1)).select(COLUMNS.names)
    options = {"bucket": "1", **READ_BY_BOTH[engine]}
    create_with_pypaimon(tmp_path, "db.t", tmp_path, first, primary_keys=["id"], options=options)
    append_with_pypaimon(tmp_path, "db.t", tmp_path, second)

    table = WarehouseCatalog(str(tmp_path)).load_table("db.t")
    assert _sorted(table.to_arrow()) == _sorted(read_with_pypaimon(tmp_path, "db.t", tmp_path))
    table.append(_rows(("+I", 3, 1, "d", 1), ("+I", 4, 1, None, 1)))
    append_with_rust(tmp_path, "db.t", first)

    ours = _sorted(table.to_arrow())
    assert len(ours) == 4
    assert _sorted(read_with_rust(tmp_path, "db.t")) == ours
    table.compact()
    assert _sorted(table.to_arrow()) == ours
    assert _sorted(read_with_pypaimon(tmp_path, "db.t", tmp_path)) == ours


def test_collected_arrays_and_maps_are_read_alike(tmp_path: Path) -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("bag", pa.list_(pa.string())),
            ("members", pa.list_(pa.int32())),
            ("properties", pa.map_(pa.string(), pa.int32())),
        ]
    )
    options = {
        "write-only": "true",
        **AGGREGATION,
        "fields.bag.aggregate-function": "collect",
        "fields.members.aggregate-function": "collect",
        "fields.members.distinct": "true",
        "fields.properties.aggregate-function": "merge_map",
    }
    table = WarehouseCatalog(str(tmp_path)).create_table("db.t", columns, primary_key=["id"], options=options)
    first = [{"id": 1, "bag": ["a", "b"], "members": [1, 2, 2], "properties": [("x", 1), ("y", 2)], "_row_kind": "+I"}]
    second = [
        {"id": 1, "bag": ["c"], "members": [2, 5], "properties": [("x", 9)], "_row_kind": "+I"},
        {"id": 2, "bag": None, "members": [3], "properties": None, "_row_kind": "+I"},
    ]
    third = [{"id": 1, "bag": ["a", "z"], "members": [2], "properties": [("y", 2)], "_row_kind": "-D"}]
    for rows in (first, second, third):
        table.append(pa.Table.from_pylist(rows, schema=columns.append(pa.field("_row_kind", pa.string()))))

    expected = [
        {"id": 1, "bag": ["b", "c"], "members": [1, 5], "properties": [("x", 9)]},
        {"id": 2, "bag": None, "members": [3], "properties": None},
    ]
    for _ in range(2):
        assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
        assert sorted(read_with_rust(tmp_path, "db.t").to_pylist(), key=lambda row: row["id"]) == expected
        table.compact()
