"""Decode topics that hold the newest row per key, as Flink's ``upsert-kafka`` writes them with JSON keys and values.

    key {"id": 1}    value {"id": 1, "name": "a"}    the new row of this key      +I
    key {"id": 1}    no value                        the row was deleted          -D, with the key only

Values are encoded as in Flink's JSON format: DECIMAL as a number, DATE ``2024-05-14``, TIME ``01:02:03``, TIMESTAMP
``2024-05-14 01:02:03.456``, TIMESTAMP_LTZ the same with a ``Z`` (a ``T`` instead of the space is accepted), bytes as
base64, ARRAY as a list, ROW, MAP and MULTISET as objects (maps whose keys are not strings also as lists of pairs),
FLOAT and DOUBLE as numbers or ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.
Unknown columns are ignored; columns missing in a value are taken from the key, or are null.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.debezium_columns import from_json_column
from storage_lib.log_store.codec.debezium_nested import (
    LeafSpelling,
    from_json,
    from_parsed,
    has_float,
    has_map,
    nested_json_type,
)
from storage_lib.log_store.codec.json_lines import may_hold_not_finite, parsed_objects
from storage_lib.log_store.codec.upserts import decoded_upserts, refuse_without_key
from storage_lib.schema.types.nested_types import has_variant

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_codec import DecodedChanges
    from storage_lib.schema.table_schema import DataField, TableSchema

_ANY_DAY = "1970-01-01"


@dataclass(frozen=True, slots=True)
class UpsertJson:
    """Decodes a JSON upsert topic to rows of ``schema``, whose primary key is the topic's."""

    schema: TableSchema

    def __post_init__(self) -> None:
        """Raise ``InvalidInputError`` for a table that can't hold the rows of an upsert topic."""
        refuse_without_key(self.schema)
        for field in self.schema.fields:
            if has_variant(field.type):
                message = (
                    f"column {field.name!r} is {field.type}, and a VARIANT can't be read from an upsert-kafka topic in "
                    "JSON; use a table without the column"
                )
                raise InvalidInputError(message)

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return "upsert-kafka"

    def decode(self, values: pa.Array, keys: pa.Array) -> DecodedChanges:
        """See ``ChangeDecoder.decode``; every record is one row."""
        return decoded_upserts(self.schema, values, keys, of_values=json_columns, of_keys=json_columns)


def json_columns(texts: pa.Array, fields: Sequence[DataField]) -> dict[str, pa.Array]:
    """Decode JSON objects (binary) to columns. Raises ``ValueError`` for a value that is not a JSON object."""
    holds_not_finite = any(has_float(field.type) for field in fields) and may_hold_not_finite(_content(texts))
    # Arrow's reader supports neither objects with unknown keys nor quoted numbers.
    aside = [each for each in fields if has_map(each.type) or (holds_not_finite and has_float(each.type))]
    read = pa.schema([(each.name, nested_json_type(each.type, FLINK)) for each in fields if each not in aside])
    columns = dict(zip(read.names, parsed_objects(texts.cast(pa.string()), read), strict=True))
    if aside:
        parsed = [json.loads(text, parse_float=Decimal) for text in texts.to_pylist()]
        for each in aside:
            columns[each.name] = from_parsed([row.get(each.name) for row in parsed], each.type, each.name, FLINK)
    return {each.name: from_json(columns[each.name], each.type, each.name, FLINK) for each in fields}


def _content(texts: pa.Array) -> bytes:
    return b"".join(texts.to_pylist())


def _json_type(arrow: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_temporal(arrow) or pa.types.is_binary(arrow)
    return pa.string() if is_text else arrow


def _typed(column: pa.Array, field: DataField) -> pa.Array:
    arrow = field.type.arrow
    if pa.types.is_time(arrow):
        moments = pc.binary_join_element_wise(_ANY_DAY, column, " ").cast(pa.timestamp("us"))
        return moments.cast(pa.time64("us")).cast(arrow)
    if pa.types.is_temporal(arrow):
        return column.cast(arrow)
    return from_json_column(column, field) if pa.types.is_binary(arrow) else column


FLINK = LeafSpelling(_json_type, _typed)
