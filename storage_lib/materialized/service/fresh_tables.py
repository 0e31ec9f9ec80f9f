"""Keep materialized tables fresh, in one process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError, PermanentError, StorageError
from storage_lib.materialized.plan.refresh_result import RefreshResult, RefreshWork
from storage_lib.materialized.service.staleness import staleness
from storage_lib.materialized.sources.downstream_tables import is_read, unread_error
from storage_lib.materialized.sources.refresh_order import refresh_order
from storage_lib.schema.options.materialized_table import RefreshStatus

if TYPE_CHECKING:
    import threading

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.io.environment import Clock
    from storage_lib.table.dynamic_table import DynamicTable

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0

Refresh = Callable[["DynamicTable"], "RefreshResult"]
"""Refreshes a table."""

Report = Callable[[str, "RefreshResult | Exception"], None]
"""Receives a table's name, and the result or the error of its refresh."""


@dataclass(slots=True)
class _Failure:
    """Last failure of a table's refresh. ``situation``: what would have to change for a permanent error to go away."""

    situation: Hashable
    is_permanent: bool
    retry_at: float
    pause: float


@dataclass(slots=True)
class FreshTables:
    """Refreshes the tables that lag behind their sources, a table after those that it reads. Not thread-safe.

    ``names`` are the tables (``database.table``); None: all materialized tables of the catalog, also ones that are
    created later. Suspended tables are left alone, and those with TARGET_LAG = DOWNSTREAM to the refreshes of the
    tables that read them; that no table does is reported as their error. A table whose refresh fails does not
    stop the others: it is tried again after a pause that doubles up to a minute, or after a permanent error once its
    query or a source has changed.
    ``query_errors`` are the engine's errors of a query over these rows, such as a division by zero, and permanent.
    """

    refresh: Refresh
    catalog: Catalog
    clock: Clock
    report: Report
    names: Sequence[str] | None = None
    query_errors: tuple[type[Exception], ...] = ()
    _failures: dict[str, _Failure] = field(default_factory=dict, init=False)

    def run(self, stop: threading.Event, *, poll_seconds: float) -> None:
        """Refresh tables until ``stop`` is set, and look for new commits every ``poll_seconds``."""
        while not stop.is_set():
            self.run_once(stop)
            stop.wait(poll_seconds)

    def run_once(self, stop: threading.Event | None = None) -> int:
        """Refresh each table that is due once; return the number of refreshes that committed.

        Raises ``InvalidInputError`` if one of ``names`` is not a materialized table, or has TARGET_LAG = DOWNSTREAM and
        none of the others reads it, and for a circle of tables.
        """
        tables = self._tables()
        reads = {name: () if each.definition is None else each.definition.sources for name, each in tables.items()}
        committed = 0
        for name in refresh_order(reads):
            if stop is not None and stop.is_set():
                break
            definition = tables[name].definition
            if definition is not None and definition.is_refreshed_by_readers:
                self._check_readers(name, tables)
            else:
                committed += self._refreshed(name, tables[name])
        return committed

    def _tables(self) -> dict[str, DynamicTable]:
        if self.names is not None:
            tables = {name: self.catalog.load_table(name) for name in self.names}
            for name, table in tables.items():
                if table.definition is None:
                    message = f"table {name} is not a materialized table"
                    raise InvalidInputError(message)
            return tables
        found = {}
        for name in self.catalog.list_tables():
            try:
                table = self.catalog.load_table(name)
            except NotFoundError:
                # Dropped since it was listed.
                continue
            if table.definition is not None:
                found[name] = table
        return found

    def _check_readers(self, name: str, tables: Mapping[str, DynamicTable]) -> None:
        """Report a table that only readers refresh and nothing reads; raise the error if it was asked for by name."""
        if is_read(name, (each.definition for each in tables.values())):
            self._failures.pop(name, None)
            return
        error = unread_error(name)
        if self.names is not None:
            raise error
        self._note(name, "no reader", error)

    def _refreshed(self, name: str, table: DynamicTable) -> int:
        """Refresh a table, and what is refreshed before it, if it is due; return the number of commits."""
        definition = table.definition
        if definition is None or definition.status is not RefreshStatus.ACTIVATED:
            return 0
        situation: Hashable = (definition, table.schema.id)
        expected: tuple[type[Exception], ...] = (StorageError, *self.query_errors)
        try:
            stale = staleness(table, definition)
            situation = stale.situation
            if not self._may_try(name, situation) or not stale.is_due(definition.freshness, self.clock.now_millis()):
                return 0
            result = self.refresh(table)
        except expected as error:
            self._note(name, situation, error)
            return 0
        self._failures.pop(name, None)
        for other, done in result.refreshed_first.items():
            self.report(other, done)
        if result.mode is not RefreshWork.NONE:
            self.report(name, result)
        return sum(each.snapshot_id is not None for each in (result, *result.refreshed_first.values()))

    def _may_try(self, name: str, situation: Hashable) -> bool:
        failure = self._failures.get(name)
        if failure is None or failure.situation != situation:
            return True
        return not failure.is_permanent and self.clock.monotonic() >= failure.retry_at

    def _note(self, name: str, situation: Hashable, error: Exception) -> None:
        known = self._failures.get(name)
        if known is not None and known.is_permanent and known.situation == situation:
            return
        pause = _FIRST_PAUSE_SECONDS if known is None else min(known.pause * 2, _LONGEST_PAUSE_SECONDS)
        self._failures[name] = _Failure(
            situation=situation,
            is_permanent=isinstance(error, (PermanentError, *self.query_errors)),
            retry_at=self.clock.monotonic() + pause,
            pause=pause,
        )
        self.report(name, error)
