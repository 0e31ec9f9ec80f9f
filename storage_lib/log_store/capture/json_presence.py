"""Tells columns that a JSON object lacks from those that it has with null, which Arrow's reader does not distinguish.

Writers repeat each column of their table in each record, so nearly always the text has as many ``"column":null`` as
nulls were read. Only other records are parsed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from storage_lib.schema.types.nested_arrays import Mask

_BESIDE_ROWS = frozenset(
    (
        *("version", "connector", "name", "ts_ms", "ts_us", "ts_ns", "snapshot", "db", "sequence", "schema", "table"),
        *("txId", "lsn", "xmin", "server_id", "gtid", "file", "pos", "row", "thread", "query", "collection", "ord"),
        *("scn", "commit_scn", "lcr_position", "change_lsn", "commit_lsn", "event_serial_no", "origin", "origin_lsn"),
    )
)
"""Keys of Debezium's ``source``, whose nulls would be taken for those of columns of the same names."""


def absent_columns(
    texts: pa.Array, nulls: Mapping[str, Mapping[str, Mask]], *, has_rows_inside: bool
) -> Mapping[str, Mapping[str, Mask]]:
    """Return by side and column the masks of the records that lack the column, for columns that some record lacks.

    ``nulls`` holds by side ("" for the object itself) and column the masks of the records whose side is there and has a
    null. ``has_rows_inside``: values may be objects themselves.
    """
    found: dict[str, dict[str, Mask]] = {side: {} for side in nulls}
    if not any(nulls.values()):
        return found
    elsewhere = set(_BESIDE_ROWS)
    for text in (texts[0], texts[-1]):
        elsewhere |= _keys_elsewhere(json.loads(text.as_py()), nulls)
    parsed: dict[int, dict[str, Any]] = {}
    for name in dict.fromkeys(name for of_side in nulls.values() for name in of_side):
        sides = [(side, of_side[name]) for side, of_side in nulls.items() if name in of_side]
        expected = np.sum([mask for _, mask in sides], axis=0)
        concerned = np.flatnonzero(expected)
        if not has_rows_inside and name not in elsewhere and len(concerned):
            pattern = f"{json.dumps(name, ensure_ascii=False)}:null"
            counts = pc.count_substring(texts.take(pa.array(concerned)), pattern).to_numpy(zero_copy_only=False)
            concerned = concerned[counts < expected[concerned]]
        for side, mask in sides:
            lacks = np.zeros(len(texts), bool)
            for index in concerned[mask[concerned]].tolist():
                if index not in parsed:
                    parsed[index] = json.loads(texts[index].as_py())
                row = parsed[index].get(side) if side else parsed[index]
                lacks[index] = isinstance(row, dict) and name not in row
            if lacks.any():
                found[side][name] = lacks
    return found


def _keys_elsewhere(record: object, sides: Mapping[str, object]) -> set[str]:
    """Return the keys in a record that are no columns: those of the envelope, of its parts, and inside of values."""
    if not isinstance(record, dict):
        return set()
    found: set[str] = set()
    rows = [record] if "" in sides else [record.get(side) for side in sides]
    if "" not in sides:
        found |= record.keys()
        found |= _keys_inside([value for key, value in record.items() if key not in sides])
    for row in rows:
        found |= _keys_inside(list(row.values())) if isinstance(row, dict) else set()
    return found


def _keys_inside(values: list[Any]) -> set[str]:
    found: set[str] = set()
    for value in values:
        if isinstance(value, dict):
            found |= value.keys() | _keys_inside(list(value.values()))
        elif isinstance(value, list):
            found |= _keys_inside(value)
    return found
