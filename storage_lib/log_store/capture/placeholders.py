"""Finds Debezium's placeholder for values that a change has not touched and the database therefore does not log.

    type of the column      placeholder, with the connector's default ``unavailable.value.placeholder``
    text                    "__debezium_unavailable_value"
    hstore as JSON          {"the text":"the text"}, as text
    bytes                   its bytes in UTF-8
    array of texts          [the text]; of uuids, the name-based uuid (version 3) of its bytes
    array of numbers        the values of its bytes
    map                     {the text: the text}

A value that happens to be the same can't be told apart; the connector's setting has to name a text that no row holds.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType

if TYPE_CHECKING:
    from storage_lib.schema.types.nested_arrays import Mask

_UUID_VERSION = 3
_TEXTUAL = (Meaning.TEXT, Meaning.BYTES, Meaning.BITS, Meaning.DECIMAL)


def is_placeholder(column: pa.Array, written: ValueType, placeholder: str) -> Mask | None:
    """Return a mask of the placeholders in a column as it was read, or None if there are none."""
    if written.meaning in _TEXTUAL:
        found = _equal(column, placeholder, written)
    elif written.meaning is Meaning.ARRAY and written.element is not None and _is_list(column.type):
        found = _in_lists(column, written.element, placeholder)
    elif written.meaning is Meaning.MAP and pa.types.is_map(column.type):
        found = _in_maps(column, placeholder)
    else:
        return None
    return found if found is not None and found.any() else None


def _equal(column: pa.Array, placeholder: str, written: ValueType) -> Mask | None:
    if pa.types.is_string(column.type):
        same = pc.is_in(column, pa.array(_texts(placeholder, written)))
    elif pa.types.is_binary(column.type):
        same = pc.equal(column, pa.scalar(placeholder.encode(), pa.binary()))
    else:
        return None
    mask: Mask = pc.fill_null(same, False).to_numpy(zero_copy_only=False)
    return mask


@lru_cache(maxsize=64)
def _texts(placeholder: str, written: ValueType) -> tuple[str, ...]:
    data = placeholder.encode()
    if written.meaning is Meaning.TEXT:
        quoted = json.dumps(placeholder, ensure_ascii=False)
        return placeholder, _name_uuid(data), f"{{{quoted}:{quoted}}}"
    match written.spelling:
        case Spelling.HEX:
            return placeholder, data.hex()
        case Spelling.BASE64_URL:
            return placeholder, base64.urlsafe_b64encode(data).decode()
        case _:
            return placeholder, base64.b64encode(data).decode()


def _name_uuid(data: bytes) -> str:
    """Return the uuid that Java's ``UUID.nameUUIDFromBytes`` makes: version 3 of RFC 4122 without a namespace."""
    digest = hashlib.md5(data, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=_UUID_VERSION))


def _is_list(of: pa.DataType) -> bool:
    return bool(pa.types.is_list(of) or pa.types.is_large_list(of))


def _in_lists(column: pa.Array, element: ValueType, placeholder: str) -> Mask | None:
    values = column.type.value_type
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
    data = np.frombuffer(placeholder.encode(), np.uint8)
    length = len(data) if pa.types.is_integer(values) else 1
    places = np.flatnonzero(lengths == length)
    if not len(places):
        return None
    items = column.take(pa.array(places)).flatten()
    if pa.types.is_integer(values):
        numbers = pc.fill_null(items, -1).to_numpy(zero_copy_only=False).reshape(-1, length)
        same = (numbers == data).all(axis=1)
    else:
        equal = _equal(items, placeholder, element)
        if equal is None:
            return None
        same = equal
    found = np.zeros(len(column), bool)
    found[places] = same
    return found


def _in_maps(column: pa.Array, placeholder: str) -> Mask | None:
    lengths = np.diff(column.offsets.to_numpy())
    places = np.flatnonzero((lengths == 1) & column.is_valid().to_numpy(zero_copy_only=False))
    if not len(places) or not pa.types.is_string(column.type.key_type):
        return None
    same = pc.equal(column.take(pa.array(places)).keys, placeholder).to_numpy(zero_copy_only=False)
    found = np.zeros(len(column), bool)
    found[places] = same
    return found
