"""Finds records whose key is another one than that of their table, as after a change of the source's primary key.

A key (a) may repeat once the source tells its rows apart by (b): rows that are not the same would replace each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.external.key_columns import key_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.log_store.capture.captured_changes import CapturedChanges
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry

_AVRO_HEADER_BYTES = 5
_BEGINS_WITH_SCHEMA = r'^\s*\{\s*"schema"\s*:\s*\{'
_PAYLOAD = r'(?s)"payload"\s*:.*$'
_PLAIN_VALUE = r':\s*(?:"(?:[^"\\]|\\.)*"|[^",{}\[\]]+)'


def first_other_key(
    keys: pa.Array, changes: CapturedChanges, primary_keys: Sequence[str], registry: SchemaRegistry | None
) -> tuple[int, tuple[str, ...]] | None:
    """Return the first record of a row whose key (binary) has other columns, with these; None if there is none.

    A record without a key has none of them. Keys that don't name their columns tell nothing.
    """
    records = np.union1d(
        changes.record_indices, [each.record_index for each in changes.refusals if not each.is_unreadable]
    ).astype(np.int64)
    asked = keys.take(pa.array(records))
    shapes = _shapes(asked, registry)
    is_null = asked.is_null().to_numpy(zero_copy_only=False)
    found: list[tuple[int, tuple[str, ...]]] = []
    if primary_keys and is_null.any():
        found.append((int(records[is_null.argmax()]), ()))
    encoded = shapes.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    for code in range(len(encoded.dictionary)):
        place = int((codes == code).argmax())
        try:
            names = key_columns(asked[place].as_py(), registry)
        except InvalidInputError:
            continue
        if {*names} != {*primary_keys}:
            found.append((int(records[place]), names))
    return min(found, default=None)


def _shapes(keys: pa.Array, registry: SchemaRegistry | None) -> pa.Array:
    """Return bytes that are the same for keys with the same columns, in most cases; for other keys they may differ."""
    if registry is not None:
        return pc.binary_slice(keys, 0, _AVRO_HEADER_BYTES)
    has_schema = pc.match_substring_regex(keys, _BEGINS_WITH_SCHEMA)
    schemas = pc.replace_substring_regex(keys, _PAYLOAD, "")
    return pc.if_else(has_schema, schemas, pc.replace_substring_regex(keys, _PLAIN_VALUE, ":"))
