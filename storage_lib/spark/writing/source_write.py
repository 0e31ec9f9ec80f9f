"""Write a data frame by ``format("dynamic_table")``, which begins, runs and commits the write where Spark runs.

The only way over Spark Connect, whose client reaches neither the server's tasks nor their messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from storage_lib.spark.data_source import statement_options
from storage_lib.table.protocol.source_offsets import ranges_to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.protocol.write_context import WriteContext


def write_by_source(
    rows: DataFrame,
    table: DynamicTable,
    *,
    commit_user: str,
    commit_identifier: int,
    mode: str = "append",
    partition: Mapping[str, object] | None = None,
    change_tracking: bool | None = None,
    based_on: int | None = None,
    write_context: WriteContext | None = None,
    adds_up: bool = False,
    sources: Sequence[SourceRange] = (),
    watermark: int | None = None,
) -> Snapshot | None:
    """Write the rows as one commit, with the parameters of ``storage_lib.spark.write``; return its snapshot or None.

    ``adds_up``, ``sources`` and ``watermark`` as for ``TableBatchWriter``. Spark returns no result of a write, so the
    snapshot is found by the commit's identity among those since the start.
    """
    given = {
        statement_options.COMMIT_USER: commit_user,
        statement_options.COMMIT_IDENTIFIER: commit_identifier,
        statement_options.CHANGE_TRACKING: None if change_tracking is None else json.dumps(change_tracking),
        statement_options.OVERWRITE_PARTITION: None if partition is None else json.dumps(dict(partition), default=str),
        statement_options.BASED_ON: based_on,
        statement_options.ORDER: None if write_context is None else write_context.to_json(),
        statement_options.ADDS_UP: "true" if adds_up else None,
        statement_options.SOURCE_RANGES: ranges_to_json(sources) if sources else None,
        statement_options.WATERMARK: watermark,
    }
    options = statement_options.options_of(table) | {
        key: str(value) for key, value in given.items() if value is not None
    }
    before = table.inspect.latest_snapshot_id() or 0
    rows.write.format(statement_options.SOURCE_NAME).options(**options).mode(mode).save()
    found = table.inspect.find_commit(commit_user, commit_identifier)
    return None if found is None or found.id <= before else found
