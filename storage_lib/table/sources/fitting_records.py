"""Finds records whose rows the table does not take, by the check that ``append`` makes of all rows at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.merge_engine import merge_function_of
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, all_nullable, any_mask
from storage_lib.log_store.capture.divided_batch import divided
from storage_lib.schema.options.default_values import default_text
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.input.input_arrays import lengths_to_check
from storage_lib.table.input.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.schema.types.nested_arrays import Mask


class FittingRecords:
    """Checks changes for one table. ``metadata`` are columns that are filled from that of the records."""

    def __init__(
        self, table: str, schema: TableSchema, options: TableOptions, *, metadata: tuple[str, ...] = ()
    ) -> None:
        self._schema = schema
        self._metadata = metadata
        self._kind_column = options.row_kind_field
        self._ignores_deletes = options.ignore_delete
        self._merge_function = merge_function_of(table, schema, options)
        self._keeps_nulls = options.merge_engine.keeps_nulls
        self._finds_by_key = bool(schema.primary_keys) and not options.merge_engine.needs_old_rows
        self._input = InputRows(
            table,
            schema,
            options.row_kind_field,
            ignore_delete=options.ignore_delete,
            merge_engine=options.merge_engine,
        )

    def misfits(self, rows: pa.RecordBatch, kinds: pa.Array) -> dict[int, tuple[str | None, str]]:
        """Return the positions of rows that the table does not take, with the column, if one is known, and the reason.

        The reasons that are most frequent are found in all rows at once: to find rows one by one takes long if many
        do not fit.
        """
        frequent = self._frequent_misfits(rows, kinds)
        is_left = np.ones(rows.num_rows, bool)
        is_left[list(frequent)] = False
        places = np.flatnonzero(is_left)
        given = rows.append_column(self._kind_column, pa.array(ROW_KIND_SYMBOLS).take(kinds))
        rest = given.take(pa.array(places)) if frequent else given
        found = divided(rest.num_rows, lambda start, stop: self._conform(rest.slice(start, stop - start)))
        return frequent | {int(places[start]): (None, str(error)) for start, _, _, error in found if error is not None}

    def _frequent_misfits(self, rows: pa.RecordBatch, kinds: pa.Array) -> dict[int, tuple[str | None, str]]:
        """Return rows that retract where none can, that have null in NOT NULL columns, or too long values."""
        counts = np.ones(rows.num_rows, bool)
        if self._ignores_deletes:
            counts = ~retracts(kinds)
        found: dict[int, tuple[str | None, str]] = {}
        if self._no_retractions is not None:
            found |= dict.fromkeys(np.flatnonzero(retracts(kinds) & counts).tolist(), (None, self._no_retractions))
        for field, column in zip(self._schema.fields, rows.columns, strict=True):
            if not field.type.nullable and column.null_count and default_text(self._schema, field) is None:
                reason = f"column {field.name!r} is {field.type}, but there is no value for it"
                for place in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False) & counts).tolist():
                    found.setdefault(place, (field.name, reason))
            lengths = lengths_to_check(column, field.type)
            if lengths is None:
                continue
            too_long = pc.fill_null(pc.greater(lengths, field.type.length), fill_value=False)
            for place in np.flatnonzero(too_long.to_numpy(zero_copy_only=False) & counts).tolist():
                reason = (
                    f"column {field.name!r} is {field.type}, but there is a value of {lengths[place]} characters or "
                    "bytes. Shorten it, or make the column longer"
                )
                found.setdefault(place, (field.name, reason))
        return found

    def checked(self, changes: CapturedChanges) -> CapturedChanges:
        """Refuse the records with such rows, and take away all their rows.

        Rows that a table with a key will complete are checked when they are complete, except for their kind. Where the
        table finds old rows by their key, the key of an old row that does not fit is enough: the record may be the one
        that corrects it.
        """
        places = np.flatnonzero(self._is_checked(changes))
        rows = changes.rows.take(pa.array(places)) if len(places) < changes.rows.num_rows else changes.rows
        misfits = {
            int(places[place]): problem
            for place, problem in self.misfits(rows, changes.kinds.take(pa.array(places))).items()
        }
        if not misfits:
            return changes
        old = self._old_rows(changes)
        # The first row of a record that does not fit tells the reason.
        first = {int(changes.record_indices[place]): place for place in sorted(misfits, reverse=True) if not old[place]}
        old &= np.isin(np.arange(len(old)), list(misfits))
        if old.any():
            is_replaced = old & self._is_replaced(changes)
            changes = changes.with_keys_only((*self._schema.primary_keys, *self._metadata), old).without_rows(
                is_replaced
            )
        return changes.refusing(
            [
                Refusal(record_index=index, column=misfits[place][0], reason=misfits[place][1])
                for index, place in first.items()
            ]
        )

    def _is_checked(self, changes: CapturedChanges) -> Mask:
        rows, is_retract = changes.rows, retracts(changes.kinds)
        masks = (*changes.unavailable.values(), *changes.absent.values()) if self._schema.primary_keys else ()
        lacks = any_mask(masks, rows.num_rows)
        if self._keeps_nulls:
            lacks &= is_retract
        checked: Mask = ~lacks | (self._schema.is_append_only & is_retract)
        return checked | self._lacks_key(rows)  # nothing completes a row without its key

    def _lacks_key(self, rows: pa.RecordBatch) -> Mask:
        nulls = [rows.column(name).is_null().to_numpy(zero_copy_only=False) for name in self._schema.primary_keys]
        return any_mask(nulls, rows.num_rows)

    def _old_rows(self, changes: CapturedChanges) -> Mask:
        """Mask of the rows that retract, and of which the key is enough."""
        if not self._finds_by_key:
            return np.zeros(changes.rows.num_rows, bool)
        return retracts(changes.kinds) & ~self._lacks_key(changes.rows)

    def _is_replaced(self, changes: CapturedChanges) -> Mask:
        """Mask of the rows that are followed by the new row of the same record with the same key."""
        kinds, records = changes.kinds.to_numpy(), changes.record_indices
        same = (kinds[1:] == RowKind.UPDATE_AFTER) & (records[1:] == records[:-1])
        for name in self._schema.primary_keys:
            column = changes.rows.column(name)
            same &= pc.fill_null(pc.equal(column[1:], column[:-1]), False).to_numpy(zero_copy_only=False)
        return np.append(same, False)[: len(kinds)]

    @cached_property
    def _no_retractions(self) -> str | None:
        """Why the table takes no row back, whatever its values are; None if it may."""
        schema = self._schema.arrow_schema
        nothing = pa.RecordBatch.from_arrays([pa.nulls(1, each.type) for each in schema], schema=all_nullable(schema))
        try:
            self._merge_function.lifted(nothing, pa.array([RowKind.DELETE], pa.int8()))
        except InvalidInputError as error:
            return str(error)
        return None

    def _conform(self, rows: pa.RecordBatch) -> None:
        try:
            conformed, kinds = self._input.conform(rows)
            self._merge_function.lifted(conformed, kinds)
        except InvalidInputError as error:
            raise ValueError(str(error)) from error
