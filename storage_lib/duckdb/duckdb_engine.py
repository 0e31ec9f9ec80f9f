"""DuckDB as an engine of materialized tables: it computes refreshes of small tables and of few changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.duckdb.accumulated_change import accumulated_change
from storage_lib.duckdb.refresh_in_duckdb import refresh_in_duckdb, why_not_duckdb
from storage_lib.io.after_commit import warn_after_commit
from storage_lib.materialized.accumulators.accumulated_state import base_of, commit_state, readable_state
from storage_lib.materialized.accumulators.tidy_state import tidy_state
from storage_lib.materialized.commit.refresh_commit import commit_difference, commit_positions
from storage_lib.materialized.engine import EngineRefusalError
from storage_lib.materialized.plan.refresh_result import RefreshEngine
from storage_lib.schema.options.value_settings import unusual_value
from storage_lib.table.maintenance.post_commit_compaction import LOST_RACE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.engine import AnswerColumn, RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.sources.source import SourceDelta
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.filter.predicate import Predicate
    from storage_lib.table.dynamic_table import DynamicTable

_WHOLE_BYTES_MAX = 16 << 20
"""Bytes of the files of small tables: the whole answer is put into the memory of this process."""


def _no_reason() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class DuckDbEngine:
    """Computes the values that Spark usually does.

    ``why_not``: why a session's settings give others; None: none do. It is asked for a query without settings only.
    """

    why_not: Callable[[], str | None] = _no_reason

    @property
    def kind(self) -> RefreshEngine:
        """The engine's name in results."""
        return RefreshEngine.DUCKDB

    def settings(self) -> None:
        """See ``Engine.settings``."""

    def answer_columns(self, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:  # noqa: ARG002  as in Engine
        """Refuse: only Spark knows the types of all queries."""
        raise EngineRefusalError("Spark finds the types of an answer")

    def accumulated_query(self, bound: BoundQuery) -> AccumulatedQuery | str | None:
        """Refuse, unless the query has no accumulators: only Spark knows their types."""
        if bound.compiled.accumulators is None or not bound.compiled.is_deterministic:
            return None
        raise EngineRefusalError("Spark finds the types of accumulators")

    def apply_changes(
        self, run: RefreshRun, changed: Mapping[str, SourceDelta], accumulated: AccumulatedPlan | None
    ) -> Snapshot | None:
        """See ``Engine.apply_changes``."""
        if accumulated is not None:
            return self._add_changes(run, changed, accumulated)
        with refresh_in_duckdb(run, changed, refusal=self._refusal(run.bound)) as refresh:
            rows = refresh.change()
        if rows is None:
            return commit_positions(run.table, run.commit)
        return commit_difference(rows, run.table, run.commit)

    def write_answer(
        self, run: RefreshRun, accumulated: AccumulatedPlan | None, where: Predicate | None = None
    ) -> Snapshot | None:
        """See ``Engine.write_answer``."""
        if accumulated is not None or where is not None:
            raise EngineRefusalError("Spark builds accumulators, and computes parts of an answer")
        with refresh_in_duckdb(run, {}, refusal=self._refusal(run.bound), size_max=_WHOLE_BYTES_MAX) as refresh:
            difference = refresh.whole()
        return commit_difference(difference, run.table, run.commit)

    def compact(self, table: DynamicTable) -> None:
        """See ``Engine.compact``; the work is done in this process."""
        try:
            with suppress(*LOST_RACE_ERRORS):
                table.compact(full=False)
        except Exception as error:  # noqa: BLE001  the rows are committed in any case
            warn_after_commit(
                f"table {table.name}: the rows are committed, but the compaction after it failed: {error}"
            )

    def why_not_small_refreshes(self, table: DynamicTable, bound: BoundQuery) -> str | None:
        """Return why DuckDB computes no refresh of a table; None if it computes the small ones."""
        return why_not_duckdb(table, bound, self._refusal(bound))

    def _refusal(self, bound: BoundQuery) -> str | None:
        """Return why the values of a query are not the usual ones."""
        return self.why_not() if bound.settings is None else unusual_value(bound.settings)

    def _add_changes(
        self, run: RefreshRun, changed: Mapping[str, SourceDelta], plan: AccumulatedPlan
    ) -> Snapshot | None:
        """Commit the state of the accumulators, then the rows of the answer that differ, with the state's snapshot."""
        query, state, table = plan.query, plan.needed_state(), run.table
        with refresh_in_duckdb(run, changed, refusal=self._refusal(run.bound)) as refresh:
            change = accumulated_change(refresh, query, state)
        if change is None:
            return commit_positions(table, plan.unchanged(run.commit))
        with readable_state():
            base = base_of(state)
        reached = commit_state(change.state, state.table, base)
        snapshot = commit_difference(change.answer, table, plan.naming(run.commit, reached))
        tidy_state(table, reached)
        return snapshot
