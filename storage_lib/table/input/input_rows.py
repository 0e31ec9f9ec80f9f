"""Converts a user's rows to rows of the table and their kinds, or refuses them before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.default_values import default_scalar, default_text
from storage_lib.schema.options.table_options import MergeEngine
from storage_lib.schema.placing.partition import DIRECTORY_NAME_BYTES_MAX, too_long_value
from storage_lib.schema.table_schema import DataField, TableSchema
from storage_lib.schema.types.nested_types import is_nested
from storage_lib.schema.types.row_kind import RETRACT_BIT, ROW_KIND_SYMBOLS
from storage_lib.table.input.input_arrays import conformed, fits_exactly, misfit
from storage_lib.table.input.moment_range import find_out_of_range, holds_moments

_SHOWN = 40
ADD_NULLS = "Add the columns, with nulls where there are no values"
Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader
"""Arrow rows from users: columns by name, in any order, with an optional row kind column."""


def record_batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    """Yield the batches of ``rows``; none for empty input."""
    if isinstance(rows, pa.RecordBatch):
        yield rows
    elif isinstance(rows, pa.Table):
        yield from rows.to_batches()
    else:
        yield from rows


def row_count(rows: Rows) -> int | None:
    """Return the number of rows; None for a reader, whose length is unknown."""
    return None if isinstance(rows, pa.RecordBatchReader) else rows.num_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Accepted columns of a batch: the position of each, and the names of those with exactly the table's types."""

    schema: pa.Schema
    places: Mapping[str, int]
    exact: frozenset[str]


class InputRows:
    """Checks and conforms batches for one table.

    ``table`` names it in errors; ``row_kind_column`` is the reserved column that carries ``+I -U +U -D``.
    ``ignore_delete`` drops rows of kind ``-U`` and ``-D``; ``merge_engine`` decides which columns may be missing.
    """

    def __init__(
        self,
        table: str,
        schema: TableSchema,
        row_kind_column: str,
        *,
        ignore_delete: bool = False,
        merge_engine: MergeEngine = MergeEngine.DEDUPLICATE,
    ) -> None:
        self._ignore_delete = ignore_delete
        self._merge_engine = merge_engine
        self._table = table
        self._schema = schema
        self._row_kind_column = row_kind_column
        self._defaults = {each.name: text for each in schema.fields if (text := default_text(schema, each)) is not None}
        self._last: _Columns | None = None  # all batches of a write usually have the same

    @cached_property
    def _with_moments(self) -> tuple[DataField, ...]:
        return tuple(each for each in self._schema.fields if holds_moments(each.type.arrow))

    def conform(self, batch: pa.RecordBatch, *, fill: bool = True) -> tuple[pa.RecordBatch, pa.Array]:
        """Return rows in the table's columns and types, and their kinds (int8; inserts if the column is missing).

        Columns that are missing, and nulls, become the column's default value, or null if it has none; with ``fill``
        False always null. Types are widened or narrowed only if no value changes. Dates, times and timestamps that
        other readers cannot represent are refused, except in rows that are deleted. Raises ``InvalidInputError`` naming
        table, column, value and remedy.
        """
        given = self._accepted(batch.schema)
        kinds = self._kinds(batch)
        if self._ignore_delete:
            is_addition = pc.equal(pc.bit_wise_and(kinds, pa.scalar(RETRACT_BIT, kinds.type)), 0)
            batch, kinds = batch.filter(is_addition), kinds.filter(is_addition)
        columns = [self._column(batch, given, field, fill=fill) for field in self._schema.fields]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema.arrow_schema)
        self._refuse_long_partitions(rows)
        self._refuse_moments_out_of_range(rows, kinds)
        return rows, kinds

    def check_columns(self, schema: pa.Schema) -> None:
        """Refuse unknown, repeated and missing columns and types that never fit, without looking at values."""
        self._accepted(schema)

    def whole_rows(self, batches: Iterable[pa.RecordBatch], verb: str) -> Iterator[pa.RecordBatch]:
        """Return the same batches; ``InvalidInputError`` for one with a row that lacks a column without a default.

        Of a table with a primary key, batches of deletions only need no more than the key.
        """
        if not self._schema.primary_keys:
            remedy = "Add the columns, or leave them null with insert(rows, partial=True)"
        elif self._merge_engine is MergeEngine.DEDUPLICATE:
            remedy = "Add the columns, or keep the stored values with upsert(rows, partial=True)"
        else:
            remedy = ADD_NULLS
        for batch in batches:
            if not (self._schema.primary_keys and self._only_deletes(batch)):
                self.check_complete(batch.schema, verb, remedy)
            yield batch

    def check_complete(self, schema: pa.Schema, verb: str, remedy: str) -> None:
        """Raise ``InvalidInputError`` with the ``remedy`` if rows of ``schema`` lack a column without a default.

        Rows of a partial-update table may lack columns: null leaves the stored value there, except in a sequence group
        of which other columns are given: these are replaced together.
        """
        if self._merge_engine is MergeEngine.PARTIAL_UPDATE:
            return
        lacking = [
            field.name
            for field in self._schema.fields
            if field.name not in schema.names and field.name not in self._defaults
        ]
        if lacking:
            names = ", ".join(map(repr, lacking))
            message = f"table {self._table}: {verb}: the rows lack {names}. {remedy}"
            raise InvalidInputError(message)

    def _accepted(self, schema: pa.Schema) -> _Columns:
        """Return the accepted columns; raises as ``check_columns``. ``_last`` is a cache that threads may replace."""
        last = self._last
        if last is None or not schema.equals(last.schema, check_metadata=True):
            self._refuse_strangers(schema)
            places = {name: place for place, name in enumerate(schema.names)}
            last = self._last = _Columns(schema=schema, places=places, exact=frozenset(self._exact_columns(schema)))
        return last

    def _only_deletes(self, batch: pa.RecordBatch) -> bool:
        if self._row_kind_column not in batch.schema.names:
            return False
        retracts = pc.bit_wise_and(self._kinds(batch), pa.scalar(RETRACT_BIT, pa.int8()))
        return not pc.any(pc.equal(retracts, 0)).as_py()

    def _refuse_strangers(self, schema: pa.Schema) -> None:
        known = {field.name for field in self._schema.fields} | {self._row_kind_column}
        for name in schema.names:
            if name not in known:
                message = (
                    f"table {self._table} has no column {name!r}; its columns are "
                    f"{', '.join(field.name for field in self._schema.fields)}. Rename or drop the column"
                )
                raise InvalidInputError(message)
            if schema.names.count(name) > 1:
                message = f"table {self._table}: column {name!r} comes twice in the input; drop one of them"
                raise InvalidInputError(message)

    def _exact_columns(self, schema: pa.Schema) -> Iterator[str]:
        """Yield the columns of exactly the table's types; raises for missing columns and types that never fit."""
        for field in self._schema.fields:
            if field.name not in schema.names:
                if not field.type.nullable and field.name not in self._defaults:
                    message = (
                        f"table {self._table}: the input lacks column {field.name!r}, which is {field.type}; "
                        "add it with a value in every row"
                    )
                    raise InvalidInputError(message)
                continue
            given = schema.field(field.name).type
            if fits_exactly(given, field.type):
                yield field.name
                continue
            problem = misfit(given, field.type, field.name)
            if problem is not None:
                raise self._wrong_type(field, given, problem)

    def _column(self, batch: pa.RecordBatch, given: _Columns, field: DataField, *, fill: bool) -> pa.Array:
        default = self._defaults.get(field.name) if fill else None
        place = given.places.get(field.name)
        if place is None:
            if default is not None:
                return pa.repeat(self._default(field, default), batch.num_rows)
            return pa.nulls(batch.num_rows, field.type.arrow)
        column = batch.column(place)
        try:
            column = column if field.name in given.exact else conformed(column, field.type, field.name)
        except InvalidInputError as error:
            message = f"table {self._table}: {error}"
            raise InvalidInputError(message) from error
        if not field.type.nullable and column.null_count:
            row = pc.index(column.is_null(), value=True).as_py()
            role = "is part of the primary key" if field.name in self._schema.primary_keys else "is NOT NULL"
            message = (
                f"table {self._table}: column {field.name!r} {role}, but {column.null_count} of {len(column)} rows "
                f"have no value in it (the first is row {row}). Fill or drop these rows"
            )
            raise InvalidInputError(message)
        if default is not None and column.null_count:
            return column.fill_null(self._default(field, default))
        return column

    def _default(self, field: DataField, text: str) -> pa.Scalar:
        try:
            return default_scalar(field, text)
        except InvalidInputError as error:
            message = f"table {self._table}: {error}"
            raise InvalidInputError(message) from error

    def _refuse_long_partitions(self, rows: pa.RecordBatch) -> None:
        for field in self._schema.partition_fields:
            value = too_long_value(field, rows.column(field.name))
            if value is not None:
                message = (
                    f"table {self._table}: partition column {field.name!r} has a value of {len(value)} characters "
                    f"({value[:_SHOWN]}...), but {field.name}=<value> is the name of a directory, which has "
                    f"{DIRECTORY_NAME_BYTES_MAX} bytes at most. Shorten the value, or partition by another column"
                )
                raise InvalidInputError(message)

    def _refuse_moments_out_of_range(self, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        for field in self._with_moments:
            column = rows.column(field.name)
            found = find_out_of_range(column, field.name)
            if found is None:
                continue
            # A deleted row may have such a value: another engine may have written it, and deleting it must be possible.
            is_added = pc.equal(pc.bit_wise_and(kinds, pa.scalar(RETRACT_BIT, kinds.type)), 0)
            added = pc.indices_nonzero(is_added)
            found = find_out_of_range(column.take(added), field.name)
            if found is None:
                continue
            message = (
                f"table {self._table}: column {found.place!r} is {field.type} and takes {found.meaning}, but row "
                f"{added[found.row].as_py()} has the value {found.value} ({found.unit}), which is not between "
                f"{found.low} and {found.high}. Correct or drop these rows; nothing was committed"
            )
            raise InvalidInputError(message)

    def _kinds(self, batch: pa.RecordBatch) -> pa.Array:
        if self._row_kind_column not in batch.schema.names:
            return pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows)
        symbols = batch.column(self._row_kind_column)
        if isinstance(symbols.type, pa.DictionaryType):
            symbols = symbols.dictionary_decode()
        if not (pa.types.is_string(symbols.type) or pa.types.is_large_string(symbols.type)):
            message = (
                f"table {self._table}: column {self._row_kind_column!r} is {symbols.type}; "
                f"it has to be a string, one of {', '.join(ROW_KIND_SYMBOLS)}"
            )
            raise InvalidInputError(message)
        codes = pc.index_in(symbols, value_set=pa.array(ROW_KIND_SYMBOLS, symbols.type))
        if codes.null_count:
            row = pc.index(codes.is_null(), value=True).as_py()
            message = (
                f"table {self._table}: row {row} has {symbols[row].as_py()!r} in {self._row_kind_column!r}, which is "
                f"no row kind; use one of {', '.join(ROW_KIND_SYMBOLS)}"
            )
            raise InvalidInputError(message)
        is_change = codes.cast(pa.bool_())
        if self._schema.is_append_only and is_change.true_count:
            row = pc.index(is_change, value=True).as_py()
            message = (
                f"table {self._table} is append-only, but row {row} is a change of kind {symbols[row].as_py()!r}: it "
                "takes inserts (+I) only. Write changes into a table with a primary key, or into one without "
                "write-mode=append-only, which counts rows. To keep insertions only, filter on "
                f"{self._row_kind_column} = '+I'; to keep every change as a row, store its kind in another column and "
                f"give {self._row_kind_column} the value '+I'"
            )
            raise InvalidInputError(message)
        return codes.cast(pa.int8())

    def _wrong_type(self, field: DataField, given: pa.DataType, problem: str) -> InvalidInputError:
        inside = f" ({problem})" if is_nested(field.type) else ""
        message = (
            f"table {self._table}: column {field.name!r} is {field.type} ({field.type.arrow} in Arrow), "
            f"but the input has {given}{inside}. Cast the column before writing"
        )
        return InvalidInputError(message)
