"""Reads the rows in JSON objects to columns as they were written, before their values are converted.

Arrow's reader reads nearly all columns. It supports neither objects with unknown keys nor "NaN" in place of a number,
so such columns are parsed apart, and only where they occur.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.debezium_envelope import UNREADABLE
from storage_lib.log_store.codec.json_lines import (
    json_lines,
    may_hold_not_finite,
    one_line_each,
    plain_objects,
    read_objects,
)
from storage_lib.log_store.conversion.captured_json import holds_float, holds_map, of_parsed, read_type

if TYPE_CHECKING:
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.schema.types.nested_arrays import Mask

ITSELF = ""
"""Name of the side whose columns are the object's own keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRows:
    """``columns`` by side and name, as written; ``is_there`` by side; ``others`` are further keys of the objects."""

    columns: Mapping[str, Mapping[str, pa.Array]]
    is_there: Mapping[str, Mask]
    others: Mapping[str, pa.Array]

    def nulls(self) -> dict[str, dict[str, Mask]]:
        """Return by side and column the masks of the rows with a null, for columns with nulls."""
        return {
            side: {
                name: column.is_null().to_numpy(zero_copy_only=False) & self.is_there[side]
                for name, column in columns.items()
                if column.null_count
            }
            for side, columns in self.columns.items()
        }


def read_rows(
    texts: pa.Array, sides: Mapping[str, Mapping[str, ValueType]], others: Mapping[str, pa.DataType]
) -> JsonRows:
    """Read JSON objects (strings without nulls): the columns of each side, and ``others``, which are keys beside them.

    Raises one of ``UNREADABLE`` for a text that is not an object, or whose values have other JSON types.
    """
    if not len(texts):
        return _no_rows(sides, others)
    objects = plain_objects(texts)
    if objects is None:
        texts = one_line_each(texts)
        objects = json_lines(texts)
    has_float = any(holds_float(of) for types in sides.values() for of in types.values())
    is_odd = has_float and may_hold_not_finite(objects)
    aside = {
        side: [name for name, of in types.items() if holds_map(of) or (is_odd and holds_float(of))]
        for side, types in sides.items()
    }
    plain = {
        side: [(name, read_type(of)) for name, of in types.items() if name not in aside[side]]
        for side, types in sides.items()
    }
    fields = [
        *(each for each in plain.get(ITSELF, [])),
        *((side, pa.struct(columns)) for side, columns in plain.items() if side != ITSELF),
        *((name, of) for name, of in others.items() if name not in dict(plain.get(ITSELF, []))),
    ]
    table = read_objects(objects, len(texts), pa.schema(fields))
    parsed = _parsed(texts) if any(aside.values()) else []
    columns, is_there = {}, {}
    for side, types in sides.items():
        rows = table.column(side).combine_chunks() if side != ITSELF else None
        is_there[side] = np.ones(len(texts), bool) if rows is None else rows.is_valid().to_numpy(zero_copy_only=False)
        values = [record if side == ITSELF else record.get(side) for record in parsed]
        columns[side] = {
            name: _read_apart(name, [None if row is None else row.get(name) for row in values], of)
            if name in aside[side]
            else (table.column(name).combine_chunks() if rows is None else pc.struct_field(rows, name))
            for name, of in types.items()
        }
    return JsonRows(
        columns=columns,
        is_there=is_there,
        others={name: table.column(name).combine_chunks() for name in others},
    )


def _read_apart(name: str, values: list[Any], of: ValueType) -> pa.Array:
    try:
        return of_parsed(values, of)
    except UNREADABLE as error:
        message = f"column {name!r}: {error}"
        raise ValueError(message) from error


def _parsed(texts: pa.Array) -> list[dict[str, Any]]:
    return [json.loads(text, parse_float=Decimal) for text in texts.to_pylist()]


def _no_rows(sides: Mapping[str, Mapping[str, ValueType]], others: Mapping[str, pa.DataType]) -> JsonRows:
    return JsonRows(
        columns={
            side: {name: pa.nulls(0, read_type(of)) for name, of in types.items()} for side, types in sides.items()
        },
        is_there={side: np.zeros(0, bool) for side in sides},
        others={name: pa.nulls(0, of) for name, of in others.items()},
    )
