"""Event time: the column that WATERMARK names and the allowed delay, stored in a table's options.

watermark.<column>    the delay, such as ``5 SECOND``
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

WATERMARK_PREFIX: Final = "watermark."
DELAY_UNIT_MILLIS: Final[Mapping[str, int]] = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}


def watermarks(options: Mapping[str, str]) -> dict[str, str]:
    """Return the delays of a table's watermarks, by column."""
    return {
        key.removeprefix(WATERMARK_PREFIX): value for key, value in options.items() if key.startswith(WATERMARK_PREFIX)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """Timestamp or date column of event time, and the delay of the watermark behind it."""

    column: str
    delay_millis: int

    def watermark_of(self, rows: pa.RecordBatch) -> int | None:
        """Return the newest event time in the rows minus the delay, in epoch milliseconds; None if all are null.

        A column without a time zone is interpreted as UTC, as in the table's files.
        """
        newest = pc.max(rows.column(self.column))
        if not newest.is_valid:
            return None
        moment = newest.cast(pa.timestamp("s")) if pa.types.is_date(newest.type) else newest
        return int(moment.cast(pa.timestamp("ms", moment.type.tz), safe=False).value) - self.delay_millis


def event_time_of(schema: TableSchema) -> EventTime | None:
    """Return the table's event time; None if it has no watermark, or only one on a computed column.

    A delay in another engine's format is ignored: the watermark is only a hint and must not fail a write.
    """
    arrow = schema.arrow_schema
    for column, delay in watermarks(schema.options).items():
        amount, _, unit = delay.strip().upper().partition(" ")
        if column not in arrow.names or not amount.isdecimal() or unit not in DELAY_UNIT_MILLIS:
            continue
        if pa.types.is_timestamp(arrow.field(column).type) or pa.types.is_date(arrow.field(column).type):
            return EventTime(column=column, delay_millis=int(amount) * DELAY_UNIT_MILLIS[unit])
    return None
