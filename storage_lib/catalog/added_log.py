"""Open a table's log in a log system that another package adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.catalog.table_name import TableName
from storage_lib.io.environment import Clock
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.options.extensions import Extension, added
from storage_lib.schema.options.table_options import ChangelogMode, TableOptions
from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Argument of the entry points of ``dynamic_tables.log_systems``: the table whose log is opened.

    ``others`` are options of the table and the connection that this library does not interpret, by key.
    """

    table: str
    table_uuid: str
    schema: TableSchema
    changelog_mode: ChangelogMode
    retention_ms: int | None
    transaction_timeout_ms: int
    others: Mapping[str, str]
    clock: Clock


def open_added_log(name: TableName, schema: TableSchema, options: TableOptions, uuid: str, clock: Clock) -> LogStore:
    """Return a table's log, which need not exist yet. Raises ``InvalidInputError`` if its package is not installed."""
    log: LogStore = added(Extension.LOG_SYSTEMS, str(options.effective_log_system))(
        LogRequest(
            table=str(name),
            table_uuid=uuid,
            schema=schema,
            changelog_mode=options.effective_changelog_mode(has_primary_key=bool(schema.primary_keys)),
            retention_ms=options.log_retention_ms,
            transaction_timeout_ms=options.log_transaction_timeout_ms,
            others=options.others,
            clock=clock,
        )
    )
    return log
