"""Says that older rows of a new column may have a DEFAULT in the source, which no record tells.

ALTER TABLE ... ADD COLUMN ... DEFAULT changes the rows of the database without a record for each. The schemas of later
records have a default, but it can't be stored: Debezium writes 0, an empty text or 1970 where the DEFAULT is a function
such as now(), and the newest DEFAULT where it was changed meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib.log_store.external.captured_topic import CapturedBatch
    from storage_lib.table.dynamic_table import DynamicTable

_log = logging.getLogger(__name__)


def warn_of_defaults(table: DynamicTable, source: str, change: CapturedBatch, added: Iterable[str]) -> None:
    """Log a warning for each of the ``added`` columns whose default in the source older rows may have."""
    newest = table.inspect.latest_snapshot()
    if newest is None or not newest.total_record_count:
        return
    for name in added:
        default = change.defaults.get(name)
        if default is not None:
            _log.warning(
                "table %s: column %r is new in source %s, whose schema has the default %r. Rows that were there before "
                "may have it in the source, and have null in the table. If ALTER TABLE ... DEFAULT gave it to them, "
                "UPDATE the rows where the column is null; if the default is a function, which Debezium writes as 0, "
                "an empty text or 1970, let the connector send the rows again",
                *(table.name, name, source, default),
            )
