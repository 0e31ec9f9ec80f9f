"""Finds records whose rows the table does not take, by the check that ``append`` makes of all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.capture.captured_changes import CapturedChanges, Refusal
from storage_lib.log_store.capture.divided_batch import divided
from storage_lib.schema.types.row_kind import RETRACT_BIT, ROW_KIND_SYMBOLS
from storage_lib.table.input.input_rows import InputRows

if TYPE_CHECKING:
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema


class FittingRecords:
    """Checks changes for one table."""

    def __init__(self, table: str, schema: TableSchema, options: TableOptions) -> None:
        self._schema = schema
        self._kind_column = options.row_kind_field
        self._input = InputRows(
            table,
            schema,
            options.row_kind_field,
            ignore_delete=options.ignore_delete,
            merge_engine=options.merge_engine,
        )

    def misfits(self, rows: pa.RecordBatch, kinds: pa.Array) -> dict[int, str]:
        """Return the positions of rows that the table does not take, with the reasons."""
        given = rows.append_column(self._kind_column, pa.array(ROW_KIND_SYMBOLS).take(kinds))
        found = divided(rows.num_rows, lambda start, stop: self._conform(given.slice(start, stop - start)))
        return {start: str(error) for start, _, _, error in found if error is not None}

    def checked(self, changes: CapturedChanges) -> CapturedChanges:
        """Refuse the records with such rows, and take away all their rows.

        Rows that a table with a key will complete are checked when they are complete, except for their kind.
        """
        rows, kinds = changes.rows, changes.kinds
        lacks = np.zeros(rows.num_rows, bool)
        if self._schema.primary_keys:
            for mask in (*changes.unavailable.values(), *changes.absent.values()):
                lacks |= mask
        is_retract = (kinds.to_numpy(zero_copy_only=False) & RETRACT_BIT).astype(bool)
        places = np.flatnonzero(~lacks | (self._schema.is_append_only & is_retract))
        whole = rows.take(pa.array(places)) if len(places) < rows.num_rows else rows
        misfits = self.misfits(whole, kinds.take(pa.array(places)))
        if not misfits:
            return changes
        reasons = {int(changes.record_indices[places[place]]): reason for place, reason in reversed(misfits.items())}
        return changes.refusing(
            [Refusal(record_index=index, column=None, reason=reason) for index, reason in reasons.items()]
        )

    def _conform(self, rows: pa.RecordBatch) -> None:
        try:
            self._input.conform(rows)
        except InvalidInputError as error:
            raise ValueError(str(error)) from error
