"""Stops a reader of a source that refuses more records than ``source.reject-max`` allows, before it commits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.source_options import REJECT_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.log_store.external.captured_topic import RefusedRecord
    from storage_lib.log_store.external.reject_limit import RejectLimit
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.sources.gathered_changes import GatheredChanges

_HOUR_MS = 3_600_000


class RejectWatch:
    """Counts the records of one run. ``keeps``: refused ones are stored, so that those of an hour are known."""

    def __init__(self, table: DynamicTable, limit: RejectLimit, source: str, *, keeps: bool) -> None:
        self._table = table
        self._limit = limit
        self._source = source
        self._keeps = keeps
        self._records = self._next_records = 0
        self._refused = self._next_refused = 0

    def passed(self) -> None:
        """Count the records of the commit that was checked and is made."""
        self._records += self._next_records
        self._refused += self._next_refused

    def check(self, changes: GatheredChanges, refused: Sequence[RefusedRecord]) -> None:
        """Raise ``InvalidInputError`` if too many records were refused; ``refused`` are those of the next commit."""
        if not self._limit.is_set:
            return
        new = len(refused)
        before = self._stored_in_last_hour() if self._keeps and self._limit.counts_hours and new else self._refused
        # The rows of a record are adjacent.
        is_next = (np.diff(changes.buckets) != 0) | (np.diff(changes.offsets) != 0)
        of_rows = min(1, len(changes.offsets)) + int(np.count_nonzero(is_next))
        # Records that were refused late have rows among the changes.
        self._next_records, self._next_refused = of_rows + len(changes.refused), new
        excess = self._limit.excess(
            rejected=self._refused + new, records=self._records + self._next_records, in_last_hour=before + new
        )
        if excess is None or not new:
            return
        last = refused[-1]
        message = (
            f"table {self._table.name}: source {self._source!r} rejects {excess} (option {REJECT_MAX}). The last one "
            f"is partition {last.partition}, offset {last.offset}: {last.reason}. The commit that would contain it was "
            f"not made, those before it were; {self._table.name}$rejected lists earlier ones. Correct the source or "
            f"the table and read again, or raise {REJECT_MAX}"
        )
        raise InvalidInputError(message)

    def _stored_in_last_hour(self) -> int:
        since = self._table.environment.clock.now_millis() - _HOUR_MS
        return self._table.inspect.rejected_since(since, source=self._source)
