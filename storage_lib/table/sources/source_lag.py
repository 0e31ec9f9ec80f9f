"""Lag of a table behind an external topic that is read into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.log_store.external.external_topic import ExternalTopic

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def source_lag(table: DynamicTable, topic: str, options: Mapping[str, str]) -> int:
    """Return the number of offsets of ``topic`` that ``table`` does not contain yet, including transaction markers.

    ``options`` are those of the catalog and of the source. Raises ``NotFoundError`` if Kafka has no such topic,
    ``UnavailableError`` if it does not answer.
    """
    foreign = ExternalTopic.parse({**options, "topic": topic}, table.arrow_schema)
    log = foreign.log()
    reached, earliest = table.inspect.source_offsets(foreign.source), log.earliest_offsets()
    if reached is None or not reached.is_of(earliest.log_id):
        reached = earliest
    return reached.distance_to(log.latest_offsets())
