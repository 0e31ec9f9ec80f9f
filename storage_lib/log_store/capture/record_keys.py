"""What the keys of records tell of the table's primary key.

A key is an object or an Avro record of the source's key columns, or, of a single column, its value alone. Keys that
can't be read tell nothing; whether that matters depends on the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.divided_batch import divided
from storage_lib.log_store.capture.json_payloads import payloads
from storage_lib.log_store.capture.json_rows import ITSELF, read_rows
from storage_lib.log_store.capture.row_images import RowImages, merged_images, no_images
from storage_lib.log_store.capture.written_rows import images_of
from storage_lib.log_store.conversion.assumed_value_type import of_modes
from storage_lib.log_store.conversion.captured_value_type import Meaning, ValueType
from storage_lib.log_store.conversion.connect_schema import value_type

if TYPE_CHECKING:
    from storage_lib.log_store.capture.captured_table import CapturedTable
    from storage_lib.schema.types.nested_arrays import Mask

    KeyReader = Callable[[CapturedTable, pa.Array], RowImages]
    """Reads keys (binary without nulls), or raises one of ``UNREADABLE``."""


def key_images(table: CapturedTable, keys: pa.Array, wanted: Mask, read: KeyReader) -> RowImages:
    """Return the primary keys that the records' keys (binary) tell, for those in ``wanted``."""
    nothing = no_images(table.columns, len(keys))
    places = np.flatnonzero(wanted & keys.is_valid().to_numpy(zero_copy_only=False))
    if not len(places) or not table.primary_keys:
        return nothing
    asked = keys.take(pa.array(places))
    others = np.delete(np.arange(len(keys)), places)
    parts = [(others, no_images(table.columns, len(others)))]
    for start, stop, images, _ in divided(len(asked), lambda a, b: _readable(read, table, asked[a:b])):
        # Without a reader's answer the key tells nothing.
        parts.append((places[start:stop], no_images(table.columns, stop - start) if images is None else images))
    return merged_images(parts)


def _readable(read: KeyReader, table: CapturedTable, keys: pa.Array) -> RowImages:
    try:
        return read(table, keys)
    except InvalidInputError as error:
        raise ValueError(str(error)) from error


def json_keys(table: CapturedTable, keys: pa.Array) -> RowImages:
    """Read keys in JSON, with or without their schemas."""
    texts = keys.cast(pa.string())
    begins = pc.match_substring_regex(texts, r'^\s*\{\s*"schema"\s*:\s*[{n]')
    has_schema = pc.and_(begins, pc.match_substring(texts, '"payload"')).to_numpy(zero_copy_only=False)
    is_object = pc.match_substring_regex(texts, r"^\s*\{").to_numpy(zero_copy_only=False) & ~has_schema
    parts = []
    for mask, images in ((has_schema, _with_schema), (is_object, _objects), (~has_schema & ~is_object, _scalars)):
        places = np.flatnonzero(mask)
        if len(places):
            parts.append((places, images(table, texts.take(pa.array(places)))))
    return merged_images(parts)


def _with_schema(table: CapturedTable, texts: pa.Array) -> RowImages:
    parts = []
    for each in payloads(texts):
        written = None if each.schema is None else value_type(each.schema)
        if written is None:
            images = no_images(table.columns, len(each.indices))
        elif written.meaning is Meaning.ROW:
            images = _of_objects(table, each.texts, dict(written.fields))
        else:
            images = _of_scalars(table, each.texts, written)
        parts.append((each.indices, images))
    return merged_images(parts)


def _objects(table: CapturedTable, texts: pa.Array) -> RowImages:
    assumed = {name: of_modes(table.schema.field(name), table.modes) for name in table.primary_keys}
    return _of_objects(table, texts, assumed)


def _scalars(table: CapturedTable, texts: pa.Array) -> RowImages:
    if len(table.primary_keys) != 1:
        return no_images(table.columns, len(texts))
    return _of_scalars(table, texts, of_modes(table.schema.field(table.primary_keys[0]), table.modes))


def _of_scalars(table: CapturedTable, texts: pa.Array, written: ValueType) -> RowImages:
    if len(table.primary_keys) != 1:
        return no_images(table.columns, len(texts))
    name = table.primary_keys[0]
    objects = pc.binary_join_element_wise(f"{{{json.dumps(name)}:", texts, "}", "")
    return _of_objects(table, objects, {name: written})


def _of_objects(table: CapturedTable, texts: pa.Array, written: Mapping[str, ValueType]) -> RowImages:
    types = {name: of for name, of in written.items() if name in table.primary_keys}
    if not types:
        return no_images(table.columns, len(texts))
    rows = read_rows(texts, {ITSELF: types}, {})
    columns = {name: (rows.columns[ITSELF][name], of) for name, of in types.items()}
    return images_of(table, columns, rows.is_there[ITSELF], {})
