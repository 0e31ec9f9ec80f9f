"""Rows with kinds <-> keys and values of debezium-json records, whole batches at a time (docs/format.md, log record).

    kind          changelog-mode upsert             changelog-mode all
    +I            {"before":null,"after":row,"op":"c"}
    +U            {"before":null,"after":row,"op":"u"}
    -U +U         -U is dropped                     {"before":old,"after":new,"op":"u"}    adjacent, of one key
    -U alone      dropped                           {"before":row,"after":null,"op":"d"}
    -D            {"before":row,"after":null,"op":"d"}, the whole row

A decoded ``u`` with ``before`` is the pair -U, +U of one offset; ``r`` (a snapshot read of Debezium's) is +I; a
record without value (a tombstone) is no change and is skipped. Columns the table does not know are ignored, columns
a record lacks are null. The key is the JSON of the primary key columns, null without one.
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
import pyarrow.json as pj

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.debezium_columns import (
    from_json_column,
    json_type,
    to_json_column,
)
from storage_lib.log_store.debezium_nested import (
    from_json,
    from_parsed,
    has_float,
    has_map,
    nested_json_type,
    to_json_text,
)
from storage_lib.log_store.json_lines import json_lines, needs_care, one_line_each
from storage_lib.log_store.log_codec import CorruptRecordError, DecodedChanges, EncodedChanges
from storage_lib.schema.nested_types import is_nested
from storage_lib.schema.row_kind import RowKind
from storage_lib.schema.table_options import ChangelogMode

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import DataField, TableSchema

_SLICE_ROWS_MAX = 65_536
_SLICE_BYTES_MAX = 32 << 20
_NULL_ROW = "null"
_OPERATIONS = pa.array(["c", "u", "d", "r"])
_OPERATION_OF_KIND = pa.array([b"c", b"d", b"u", b"d"])
_KIND_OF_OPERATION = np.array([RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.INSERT], np.int8)
_UPDATE, _DELETE = 1, 2
_NOT_FINITE_SUFFIX = "\x01"


@dataclass(frozen=True)
class DebeziumJson:
    """The codec of one table; ``with_update_before`` is changelog-mode ``all``."""

    schema: TableSchema
    with_update_before: bool

    @property
    def name(self) -> str:
        """See ``ChangeDecoder.name``."""
        return "debezium-json"

    def encode(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[EncodedChanges]:
        """See ``LogCodec.encode``."""
        codes = kinds.to_numpy(zero_copy_only=False)
        if not self.with_update_before:
            kept = codes != RowKind.UPDATE_BEFORE
            if not kept.all():
                rows, codes = rows.filter(pa.array(kept)), codes[kept]
        for start, stop in self._slices(rows, codes):
            yield self._encode_slice(rows.slice(start, stop - start), codes[start:stop])

    def decode(self, values: pa.Array, keys: pa.Array | None = None) -> DecodedChanges:  # noqa: ARG002  a row has all
        """See ``ChangeDecoder.decode``; a null is a tombstone, which is no change."""
        record_indices = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        present = values.drop_null()
        try:
            changes = self._decode_present(present)
        except (ValueError, pa.ArrowException) as error:
            raise self._first_corrupt(present, record_indices, error) from error
        return DecodedChanges(
            rows=changes.rows,
            kinds=changes.kinds,
            record_indices=record_indices[changes.record_indices],
        )

    @classmethod
    def for_table(cls, schema: TableSchema, changelog_mode: ChangelogMode) -> DebeziumJson:
        """The codec for a table's ``log.changelog-mode``; ``auto`` is upsert with a primary key, all without.

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

    def _slices(self, rows: pa.RecordBatch, codes: np.ndarray) -> Iterator[tuple[int, int]]:
        """Cut where neither memory nor a pair of -U and +U suffers."""
        row_bytes = max(1, rows.nbytes // max(1, len(codes)))
        step = max(1, min(_SLICE_ROWS_MAX, _SLICE_BYTES_MAX // row_bytes))
        start = 0
        while start < len(codes):
            stop = min(len(codes), start + step)
            if stop < len(codes) and codes[stop - 1] == RowKind.UPDATE_BEFORE:
                stop += 1
            yield start, stop
            start = stop

    def _encode_slice(self, rows: pa.RecordBatch, codes: np.ndarray) -> EncodedChanges:
        text = self._json_text(rows, self.schema.fields)
        keys = self._keys(rows)
        is_pair = np.zeros(len(codes), bool)
        if self.with_update_before:
            is_pair[:-1] = (codes[:-1] == RowKind.UPDATE_BEFORE) & (codes[1:] == RowKind.UPDATE_AFTER)
            if self.schema.primary_keys:
                is_pair[:-1] &= pc.equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
        is_retract = (codes == RowKind.UPDATE_BEFORE) | (codes == RowKind.DELETE)
        before = _rows_or_null(text, is_retract)
        after = _rows_or_null(text, ~is_retract)
        operations = _OPERATION_OF_KIND.take(pa.array(codes))
        if is_pair.any():
            next_rows = text.take(pa.array(np.minimum(np.arange(1, len(codes) + 1), len(codes) - 1)))
            after = pc.if_else(pa.array(is_pair), next_rows, after)
            operations = pc.if_else(pa.array(is_pair), b"u", operations)
        values = pc.binary_join_element_wise(
            b'{"before":',
            before,
            b',"after":',
            after,
            b',"op":"',
            operations,
            b'"}',
            b"",
        )
        if is_pair.any():
            is_record = np.ones(len(codes), bool)
            is_record[1:] = ~is_pair[:-1]
            keys, values = (
                keys.filter(pa.array(is_record)),
                values.filter(pa.array(is_record)),
            )
        return EncodedChanges(keys=keys, values=values)

    def _keys(self, rows: pa.RecordBatch) -> pa.Array:
        if not self.schema.primary_keys:
            return pa.nulls(len(rows), pa.binary())
        return self._json_text(rows, tuple(self.schema.field(name) for name in self.schema.primary_keys))

    def _json_text(self, rows: pa.RecordBatch, fields: tuple[DataField, ...]) -> pa.Array:
        """One JSON object per row, as binary."""
        nested = tuple(field for field in fields if is_nested(field.type))
        scalars = tuple(field for field in fields if not is_nested(field.type))
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
        # JSON has no word for NaN: where a column holds one, its numbers go through as strings and are unquoted after.
        frame = frame.with_columns(_number_text(frame[name]) for name in not_finite)
        text = frame.select(pl.struct(pl.all()).struct.json_encode().alias("row"))["row"]
        for name in not_finite:
            quoted_number = rf'([{{,]){re.escape(_json_name(name))}:"(-?[0-9][^"]*)"'
            unquoted = f"${{1}}{_json_name(name).replace('$', '$$')}:${{2}}"
            text = text.str.replace(quoted_number, unquoted)
        return text.to_arrow().cast(pa.string())

    # Decoding

    @cached_property
    def _scalar_json_fields(self) -> list[tuple[str, pa.DataType]]:
        fields = [(each.name, json_type(each.type.arrow)) for each in self.schema.fields if not is_nested(each.type)]
        return fields + [(name + _NOT_FINITE_SUFFIX, pa.string()) for name in self._float_names]

    @cached_property
    def _nested_fields(self) -> tuple[DataField, ...]:
        return tuple(field for field in self.schema.fields if is_nested(field.type))

    @cached_property
    def _float_names(self) -> list[str]:
        return [field.name for field in self.schema.fields if pa.types.is_floating(field.type.arrow)]

    def _first_corrupt(self, values: pa.Array, record_indices: np.ndarray, error: Exception) -> CorruptRecordError:
        """Halve the batch until one value is left: its position, and what is wrong with it."""
        start, stop = 0, len(values)
        while stop - start > 1:
            middle = (start + stop) // 2
            try:
                self._decode_present(values[start:middle])
            except (ValueError, pa.ArrowException) as left_error:
                stop, error = middle, left_error
            else:
                start = middle
        try:
            self._decode_present(values[start:stop])
        except (ValueError, pa.ArrowException) as value_error:
            error = value_error
        return CorruptRecordError(int(record_indices[start]), str(error))

    def _decode_present(self, values: pa.Array) -> DecodedChanges:
        table = self._parse(values)
        operations = pc.index_in(table["op"], _OPERATIONS).to_numpy(zero_copy_only=False)
        if np.isnan(operations.astype(np.float64)).any():
            message = "op is none of c, u, d, r"
            raise ValueError(message)
        operations = operations.astype(np.int64)
        has_before = table["before"].is_valid().to_numpy(zero_copy_only=False)
        has_after = table["after"].is_valid().to_numpy(zero_copy_only=False)
        is_delete = operations == _DELETE
        if not np.where(is_delete, has_before, has_after).all():
            message = "a deletion without before, or another change without after"
            raise ValueError(message)
        is_pair = (operations == _UPDATE) & has_before
        record_indices = np.repeat(np.arange(len(values)), 1 + is_pair)
        kinds, is_before = (
            _KIND_OF_OPERATION[operations[record_indices]],
            is_delete[record_indices],
        )
        if is_pair.any():
            first_of_pair = np.flatnonzero(is_pair) + np.arange(np.count_nonzero(is_pair))
            kinds[first_of_pair], is_before[first_of_pair] = RowKind.UPDATE_BEFORE, True
        sides = _SideColumns(
            table["before"],
            table["after"],
            record_indices if is_pair.any() else None,
            is_before,
        )
        columns = [self._column(field, sides) for field in self.schema.fields]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema.arrow_schema)
        return DecodedChanges(rows=rows, kinds=pa.array(kinds), record_indices=record_indices)

    def _column(self, field: DataField, sides: _SideColumns) -> pa.Array:
        column = sides.column(field.name)
        if pa.types.is_floating(column.type):
            not_finite = sides.column(field.name + _NOT_FINITE_SUFFIX)
            if not_finite.null_count < len(not_finite):
                column = pc.if_else(not_finite.is_valid(), not_finite.cast(column.type), column)
        if column.null_count and not field.type.nullable:
            message = f"column {field.name!r} is null or missing, but NOT NULL"
            raise ValueError(message)
        return from_json(column, field.type, field.name) if is_nested(field.type) else from_json_column(column, field)

    def _parse(self, values: pa.Array) -> dict[str, pa.Array]:
        text = values.cast(pa.string())
        lines = json_lines(text)
        is_odd = len(text) > 0 and needs_care(text, lines)
        aside = tuple(
            field for field in self._nested_fields if has_map(field.type) or (is_odd and has_float(field.type))
        )
        read = [(field.name, nested_json_type(field.type)) for field in self._nested_fields if field not in aside]
        row_type = pa.struct([*self._scalar_json_fields, *read])
        envelope = pa.schema([("before", row_type), ("after", row_type), ("op", pa.string())])
        if not len(text):
            every = pa.struct([*row_type, *((field.name, nested_json_type(field.type)) for field in aside)])
            return {"before": pa.nulls(0, every), "after": pa.nulls(0, every), "op": pa.nulls(0, pa.string())}
        if is_odd:
            text = one_line_each(text)
            lines = json_lines(self._with_not_finite_aside(text))
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(explicit_schema=envelope, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(values):
            message = "more than one JSON object"
            raise ValueError(message)
        columns = {name: table.column(name).combine_chunks() for name in envelope.names}
        if aside:
            records = json.loads(b"[" + b",".join(text.cast(pa.binary()).to_pylist()) + b"]")
            for side in ("before", "after"):
                columns[side] = _with_parsed(columns[side], [record.get(side) for record in records], aside)
        return columns

    def _with_not_finite_aside(self, text: pa.Array) -> pa.Array:
        """Move "NaN" and the infinities of FLOAT and DOUBLE columns into string columns: the parser wants numbers."""
        for name in self._float_names:
            # Inside a JSON string every quote is escaped, so this can only match a whole key and its value.
            pattern = rf'([{{,]\s*){re.escape(_json_name(name))}\s*:\s*"(NaN|-?Infinity)"'
            aside = f"{_json_name(name)}:0,{_json_name(name + _NOT_FINITE_SUFFIX)}".replace("\\", "\\\\")
            text = pc.replace_substring_regex(text, pattern=pattern, replacement=rf'\1{aside}:"\2"')
        return text


@dataclass(frozen=True, slots=True)
class _SideColumns:
    """Columns picked row by row from ``before`` or ``after``; ``record_indices`` None means a row per record."""

    before: pa.Array
    after: pa.Array
    record_indices: np.ndarray | None
    is_before: np.ndarray

    def column(self, name: str) -> pa.Array:
        if not self.is_before.any():
            return pc.struct_field(self.after, name)
        if self.is_before.all():
            return pc.struct_field(self.before, name)
        before, after = (
            pc.struct_field(self.before, name),
            pc.struct_field(self.after, name),
        )
        if self.record_indices is not None:
            indices = pa.array(self.record_indices)
            before, after = before.take(indices), after.take(indices)
        return pc.if_else(pa.array(self.is_before), before, after)


def _with_parsed(rows: pa.StructArray, parsed: list[Any], fields: tuple[DataField, ...]) -> pa.StructArray:
    """Rows of before or after with the columns that Arrow's reader was not told of, out of ``json.loads``."""
    names = [rows.type.field(index).name for index in range(rows.type.num_fields)]
    arrays = {name: rows.field(name) for name in names}
    for field in fields:
        values = [None if row is None else row.get(field.name) for row in parsed]
        arrays[field.name] = from_parsed(values, field.type, field.name)
    return pa.StructArray.from_arrays(list(arrays.values()), list(arrays), mask=rows.is_null())


def _rows_or_null(text: pa.Array, has_row: np.ndarray) -> pa.Array | pa.Scalar:
    if has_row.all():
        return text
    null = pa.scalar(_NULL_ROW.encode(), pa.binary())
    return pc.if_else(pa.array(has_row), text, null) if has_row.any() else null


def _has_not_finite(column: pa.Array) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.invert(pc.is_finite(column))).as_py())


def _number_text(numbers: pl.Series) -> pl.Series:
    text = numbers.cast(pl.String)
    return text.replace({"inf": "Infinity", "-inf": "-Infinity"})


def _json_name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
