"""Convert batches of changes to and from keys and values of debezium-json records (docs/format.md, log record).

    kind          changelog-mode upsert             changelog-mode all
    +I            {"before":null,"after":row,"op":"c"}
    -U +U         -U is dropped                     {"before":old,"after":new,"op":"u"}    adjacent, of one key if any
    +U alone      {"before":null,"after":row,"op":"u"}    {"before":null,"after":row,"op":"c"}
    -U alone      {"before":row,"after":null,"op":"d"}
    -D            {"before":row,"after":null,"op":"d"}, the whole row

A ``u`` with ``before`` decodes to the pair -U, +U with one offset; ``r`` (a snapshot read of Debezium) to +I; a
record without a value (a tombstone) is skipped. Unknown columns are ignored, missing columns are null. The key is the
JSON of the primary key columns, null without a primary key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.debezium_columns import (
    from_json_column,
    json_type,
    to_json_column,
)
from storage_lib.log_store.codec.debezium_envelope import (
    Sides,
    decoded_but_tombstones,
    enveloped,
    logged_slices,
    opened,
)
from storage_lib.log_store.codec.debezium_nested import (
    from_json,
    from_parsed,
    has_float,
    has_map,
    nested_json_type,
    to_json_text,
)
from storage_lib.log_store.codec.json_lines import (
    all_start_with,
    json_lines,
    may_hold_not_finite,
    one_line_each,
    plain_objects,
    read_objects,
)
from storage_lib.log_store.codec.log_codec import DecodedChanges, EncodedChanges
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.types.nested_types import is_nested

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import DataField, TableSchema

_NULL_ROW = b"null"
_NOT_FINITE_SUFFIX = "\x01"
_NOTHING_BEFORE = b'{"before":null,"after":{'
"""Start of the records that our writers emit for inserts and upserts, which have no ``before`` to parse."""


@dataclass(frozen=True)
class DebeziumJson:
    """Codec of one table; ``with_update_before`` is changelog-mode ``all``."""

    schema: TableSchema
    with_update_before: bool

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return "debezium-json"

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[EncodedChanges]:
        """See ``LogCodec.encode``."""
        for slice_, codes in logged_slices(rows, kinds, self.keys, with_update_before=self.with_update_before):
            yield self._encode_slice(slice_, codes)

    def decode(self, values: pa.Array, keys: pa.Array | None = None) -> DecodedChanges:  # noqa: ARG002  a row has all
        """See ``ChangeDecoder.decode``; a null is a tombstone and is skipped."""
        return decoded_but_tombstones(values, self._decode_present)

    @classmethod
    def for_table(cls, schema: TableSchema, changelog_mode: ChangelogMode) -> DebeziumJson:
        """Return the codec for a table's ``log.changelog-mode``; ``auto`` is upsert with a primary key, all without.

        Raises ``InvalidInputError`` for ``upsert`` without a primary key.
        """
        has_key = bool(schema.primary_keys)
        if changelog_mode is ChangelogMode.UPSERT and not has_key:
            message = "log.changelog-mode=upsert needs a primary key; use all or auto"
            raise InvalidInputError(message)
        with_update_before = (
            not has_key if changelog_mode is ChangelogMode.AUTO else changelog_mode is ChangelogMode.ALL
        )
        return cls(schema, with_update_before)

    # Encoding

    def _encode_slice(self, rows: pa.RecordBatch, codes: np.ndarray) -> EncodedChanges:
        keys = self.keys(rows)
        envelopes = enveloped(
            self._json_text(rows, self._scalar_fields, self._nested_fields),
            codes,
            keys if self.schema.primary_keys else None,
            with_update_before=self.with_update_before,
            nothing=_NULL_ROW,
        )
        values = pc.binary_join_element_wise(
            b'{"before":', envelopes.before, b',"after":', envelopes.after, b',"op":"', envelopes.operations, b'"}', b""
        )
        if envelopes.is_record is not None:
            keys, values = keys.filter(envelopes.is_record), values.filter(envelopes.is_record)
        return EncodedChanges(keys=keys, values=values)

    def keys(self, rows: pa.RecordBatch) -> pa.Array:
        """Encode the keys of rows as JSON (binary; null without a primary key)."""
        if not self.schema.primary_keys:
            return pa.nulls(len(rows), pa.binary())
        return self._json_text(rows, self._key_fields, ())

    def _json_text(
        self, rows: pa.RecordBatch, scalars: tuple[DataField, ...], nested: tuple[DataField, ...]
    ) -> pa.Array:
        """Encode each row as a JSON object (binary)."""
        parts: list[Any] = []
        if scalars:
            text = self._scalar_text(rows, scalars)
            parts.append(pc.utf8_slice_codeunits(text, 0, -1) if nested else text)
        for field in nested:
            inside = to_json_text(rows.column(field.name), field.type, field.name)
            parts += [f"{',' if parts else '{'}{_json_name(field.name)}:", inside]
        text = pc.binary_join_element_wise(*parts, "}", "") if nested else parts[0]
        return text.cast(pa.binary())

    def _scalar_text(self, rows: pa.RecordBatch, fields: tuple[DataField, ...]) -> pa.Array:
        columns = {field.name: to_json_column(rows.column(field.name), field) for field in fields}
        not_finite = [name for name, column in columns.items() if _has_not_finite(column)]
        frame = pl.DataFrame({name: pl.Series(pl.from_arrow(column)) for name, column in columns.items()})
        # JSON has no NaN: a column that contains one is encoded as strings, which are unquoted afterwards.
        frame = frame.with_columns(_number_text(frame[name]) for name in not_finite)
        text = frame.select(pl.struct(pl.all()).struct.json_encode().alias("row"))["row"]
        for name in not_finite:
            quoted_number = rf'([{{,]){re.escape(_json_name(name))}:"(-?[0-9][^"]*)"'
            unquoted = f"${{1}}{_json_name(name).replace('$', '$$')}:${{2}}"
            text = text.str.replace(quoted_number, unquoted)
        return text.to_arrow().cast(pa.string())

    @cached_property
    def _key_fields(self) -> tuple[DataField, ...]:
        """Fields of the primary key, which are all scalar."""
        return tuple(self.schema.field(name) for name in self.schema.primary_keys)

    @cached_property
    def _scalar_fields(self) -> tuple[DataField, ...]:
        return tuple(field for field in self.schema.fields if not is_nested(field.type))

    # Decoding

    @cached_property
    def _scalar_json_fields(self) -> list[tuple[str, pa.DataType]]:
        return [(each.name, json_type(each.type.arrow)) for each in self._scalar_fields]

    @cached_property
    def _not_finite_fields(self) -> list[tuple[str, pa.DataType]]:
        return [(name + _NOT_FINITE_SUFFIX, pa.string()) for name in self._float_names]

    @cached_property
    def _nested_fields(self) -> tuple[DataField, ...]:
        return tuple(field for field in self.schema.fields if is_nested(field.type))

    @cached_property
    def _float_names(self) -> list[str]:
        return [field.name for field in self.schema.fields if pa.types.is_floating(field.type.arrow)]

    @cached_property
    def _has_float(self) -> bool:
        return any(has_float(field.type) for field in self.schema.fields)

    def _decode_present(self, values: pa.Array) -> DecodedChanges:
        table = self._parse(values)
        return opened(
            table["before"],
            table["after"],
            table["op"],
            self.schema,
            lambda sides: [self._column(field, sides) for field in self.schema.fields],
        )

    def _column(self, field: DataField, sides: Sides) -> pa.Array:
        column = sides.column(field.name)
        if pa.types.is_floating(column.type) and sides.has(field.name + _NOT_FINITE_SUFFIX):
            not_finite = sides.column(field.name + _NOT_FINITE_SUFFIX)
            if not_finite.null_count < len(not_finite):
                column = pc.if_else(not_finite.is_valid(), not_finite.cast(column.type), column)
        if column.null_count and not field.type.nullable:
            message = f"column {field.name!r} is null or missing, but NOT NULL"
            raise ValueError(message)
        return from_json(column, field.type, field.name) if is_nested(field.type) else from_json_column(column, field)

    def _parse(self, values: pa.Array) -> dict[str, pa.Array]:
        text = values.cast(pa.string())
        objects = plain_objects(text) if len(text) else b""
        is_odd = objects is None or (self._has_float and may_hold_not_finite(objects))
        aside = tuple(
            field for field in self._nested_fields if has_map(field.type) or (is_odd and has_float(field.type))
        )
        read = [(field.name, nested_json_type(field.type)) for field in self._nested_fields if field not in aside]
        row_type = pa.struct([*self._scalar_json_fields, *(self._not_finite_fields if is_odd else ()), *read])
        if not len(text):
            every = pa.struct([*row_type, *((field.name, nested_json_type(field.type)) for field in aside)])
            return {"before": pa.nulls(0, every), "after": pa.nulls(0, every), "op": pa.nulls(0, pa.string())}
        envelope = {"before": row_type, "after": row_type, "op": pa.string()}
        if objects is None or is_odd:
            text = one_line_each(text)
            objects = json_lines(self._with_not_finite_aside(text))
        elif all_start_with(text, _NOTHING_BEFORE):
            del envelope["before"]
        table = read_objects(objects, len(text), pa.schema(envelope))
        columns = {name: table.column(name).combine_chunks() for name in envelope}
        if "before" not in columns:
            columns["before"] = pa.nulls(len(text), row_type)
        if aside:
            records = json.loads(b"[" + b",".join(text.cast(pa.binary()).to_pylist()) + b"]")
            for side in ("before", "after"):
                columns[side] = _with_parsed(columns[side], [record.get(side) for record in records], aside)
        return columns

    def _with_not_finite_aside(self, text: pa.Array) -> pa.Array:
        """Move "NaN" and the infinities of FLOAT and DOUBLE columns to string columns: the parser requires numbers."""
        for name in self._float_names:
            # Inside a JSON string every quote is escaped, so this can only match a whole key and its value.
            pattern = rf'([{{,]\s*){re.escape(_json_name(name))}\s*:\s*"(NaN|-?Infinity)"'
            aside = f"{_json_name(name)}:0,{_json_name(name + _NOT_FINITE_SUFFIX)}".replace("\\", "\\\\")
            text = pc.replace_substring_regex(text, pattern=pattern, replacement=rf'\1{aside}:"\2"')
        return text


def _with_parsed(rows: pa.StructArray, parsed: list[Any], fields: tuple[DataField, ...]) -> pa.StructArray:
    """Add the columns that Arrow's reader skipped and ``json.loads`` parsed to the rows of before or after."""
    names = [rows.type.field(index).name for index in range(rows.type.num_fields)]
    arrays = {name: rows.field(name) for name in names}
    for field in fields:
        values = [None if row is None else row.get(field.name) for row in parsed]
        arrays[field.name] = from_parsed(values, field.type, field.name)
    return pa.StructArray.from_arrays(list(arrays.values()), list(arrays), mask=rows.is_null())


def _has_not_finite(column: pa.Array) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.invert(pc.is_finite(column))).as_py())


def _number_text(numbers: pl.Series) -> pl.Series:
    text = numbers.cast(pl.String)
    return text.replace({"inf": "Infinity", "-inf": "-Infinity"})


def _json_name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
