"""Chooses the checkpoint directory of a sink's query: a new one if the table no longer agrees with the last one.

<location>       the first checkpoint
<location>-2     the next one, after the table was rolled back, recreated, or an ingest has written the source's rows

Both the checkpoint and the newest snapshot of the table record up to where the source was read. If they differ, the
table is right: the sink reads the source from the table's offsets, which requires a query with a new checkpoint.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage_lib.spark.data_source.batch_sources import CheckpointSources
from storage_lib.spark.data_source.checkpoint_identity import TABLE_FILE

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)


def checkpoint_to_resume(location: str, table: DynamicTable, *, reports_sources: bool, by_parts: bool = False) -> str:
    """Return the newest checkpoint at ``location``, or a new one next to it if the table no longer agrees with it.

    ``reports_sources``: the query's commits record its source offsets; ``by_parts`` as for ``another_past``. Returns
    ``location`` if only Spark can access its storage, because the offsets can't be compared.
    """
    past = CheckpointSources.of(location, table.address.options)
    if past is None:
        return location
    number = 1
    while past.files.exists(f"{_numbered(past.location, number + 1)}/metadata"):
        number += 1
    newest = CheckpointSources(past.files, _numbered(past.location, number))
    why = _of_another_table(newest, table)
    if why is None and reports_sources:
        why = newest.another_past(table, by_parts=by_parts)
    if why is not None:
        number += 1
        _LOGGER.warning("%s. Starting a new checkpoint: %s", why, _numbered(location, number))
    return _numbered(location, number)


def _numbered(location: str, number: int) -> str:
    location = location.rstrip("/")
    return location if number == 1 else f"{location}-{number}"


def _of_another_table(checkpoint: CheckpointSources, table: DynamicTable) -> str | None:
    path = f"{checkpoint.location}/{TABLE_FILE}"
    written_to = checkpoint.files.read_bytes(path).decode() if checkpoint.files.exists(path) else ""
    if written_to in ("", table.uuid):
        return None
    return f"checkpoint {checkpoint.location} belongs to a table {table.name} that has been dropped since"
