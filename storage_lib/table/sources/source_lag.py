"""Topics that are read into a table, and its lag behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.log_store.external.external_topic import ExternalTopic

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that Kafka allows. Sources of materialized tables have others."""


def topics_read(table: DynamicTable) -> tuple[str, ...]:
    """Return the sources of the newest snapshot that have the name of a topic, as they have by default."""
    newest = table.inspect.latest_snapshot_id()
    if newest is None:
        return ()
    return tuple(sorted(filter(_TOPIC.fullmatch, table.inspect.source_positions(newest).positions)))


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
