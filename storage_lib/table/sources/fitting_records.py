"""Finds records whose rows the table does not take, by the check that ``append`` makes of all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal, any_mask
from storage_lib.log_store.capture.divided_batch import divided
from storage_lib.schema.options.default_values import default_text
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.input.input_arrays import lengths_to_check
from storage_lib.table.input.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema


class FittingRecords:
    """Checks changes for one table."""

    def __init__(self, table: str, schema: TableSchema, options: TableOptions) -> None:
        self._schema = schema
        self._kind_column = options.row_kind_field
        self._ignores_deletes = options.ignore_delete
        self._input = InputRows(
            table,
            schema,
            options.row_kind_field,
            ignore_delete=options.ignore_delete,
            merge_engine=options.merge_engine,
        )

    def misfits(self, rows: pa.RecordBatch, kinds: pa.Array) -> dict[int, tuple[str | None, str]]:
        """Return the positions of rows that the table does not take, with the column, if one is known, and the reason.

        The two reasons that are most frequent are found in all rows at once: to find rows one by one takes long if many
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
        """Return rows with nulls in NOT NULL columns, and values that are too long."""
        counts = np.ones(rows.num_rows, bool)
        if self._ignores_deletes:
            counts = ~retracts(kinds)
        found: dict[int, tuple[str | None, str]] = {}
        for field, column in zip(self._schema.fields, rows.columns, strict=True):
            if not field.type.nullable and column.null_count and default_text(self._schema, field) is None:
                reason = f"column {field.name!r} is {field.type}, but there is no value for it"
                nulls = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False) & counts)
                found |= dict.fromkeys(nulls.tolist(), (field.name, reason))
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

        Rows that a table with a key will complete are checked when they are complete, except for their kind.
        """
        rows, kinds = changes.rows, changes.kinds
        masks = (*changes.unavailable.values(), *changes.absent.values()) if self._schema.primary_keys else ()
        lacks = any_mask(masks, rows.num_rows)
        checked = ~lacks | (self._schema.is_append_only & retracts(kinds))
        for name in self._schema.primary_keys:
            # Nothing completes a row without its key.
            checked |= rows.column(name).is_null().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(checked)
        whole = rows.take(pa.array(places)) if len(places) < rows.num_rows else rows
        misfits = self.misfits(whole, kinds.take(pa.array(places)))
        if not misfits:
            return changes
        # The first row of a record that does not fit tells the reason.
        told = {int(changes.record_indices[places[place]]): misfits[place] for place in sorted(misfits, reverse=True)}
        return changes.refusing(
            [Refusal(record_index=index, column=column, reason=reason) for index, (column, reason) in told.items()]
        )

    def _conform(self, rows: pa.RecordBatch) -> None:
        try:
            self._input.conform(rows)
        except InvalidInputError as error:
            raise ValueError(str(error)) from error
