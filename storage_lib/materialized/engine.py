"""The interface of the engines that compute the rows of a refresh: Spark, and DuckDB in this process.

A refresh asks its engines in turn. One that does not compute rows exactly as Spark does, or would be slow, refuses
before anything is written, and the next one is asked.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.commit.refresh_commit import RefreshCommit
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.plan.refresh_plan import RefreshPlan
    from storage_lib.materialized.plan.refresh_result import RefreshEngine
    from storage_lib.materialized.sources.source import SourceDelta
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.filter.predicate import Predicate
    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)
_T = TypeVar("_T")


class EngineRefusalError(Exception):
    """An engine does not compute this; the message says why. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRun:
    """One refresh that is planned: what an engine computes, and the identity and positions of its commit."""

    table: DynamicTable
    bound: BoundQuery
    plan: RefreshPlan
    commit: RefreshCommit


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of a query's answer: its field for a table, and the name of its type in Spark."""

    field: pa.Field
    type_name: str


class Engine(Protocol):
    """Computes answers and their changes. Each method raises ``EngineRefusalError`` where another engine has to."""

    @property
    def kind(self) -> RefreshEngine:
        """The engine's name in results."""
        ...

    def settings(self) -> tuple[tuple[str, str], ...] | None:
        """Return the settings of Spark by which it computes values, as they are stored; None if it has none."""
        ...

    def answer_columns(self, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:
        """Type the answer of the query of table ``name``, without running it.

        Raises ``InvalidInputError`` for a query that the engine refuses, and for rows that can't be compared.
        """
        ...

    def accumulated_query(self, bound: BoundQuery) -> AccumulatedQuery | str | None:
        """Return the accumulators of a query; None if its aggregates have none, or why its types rule them out."""
        ...

    def apply_changes(
        self, run: RefreshRun, changed: Mapping[str, SourceDelta], accumulated: AccumulatedPlan | None
    ) -> Snapshot | None:
        """Apply the changes of the sources to the table in one commit; None if there was nothing to commit.

        Raises as ``commit_collected``, ``UnreadableStateError`` for a damaged state, and what the engine raises.
        """
        ...

    def write_answer(
        self, run: RefreshRun, accumulated: AccumulatedPlan | None, where: Predicate | None = None
    ) -> Snapshot | None:
        """Write the difference between the table and the whole answer, of the rows ``where`` only.

        With ``accumulated``, also build a new state. Raises as ``apply_changes``.
        """
        ...

    def compact(self, table: DynamicTable) -> None:
        """Compact what is due after a commit; a failure becomes a ``RuntimeWarning``."""
        ...


def first_able(table: str, engines: Sequence[Engine], compute: Callable[[Engine], _T]) -> tuple[Engine, _T]:
    """Return the first engine that does not refuse, with its result; raises the last one's refusal if all refuse."""
    *others, last = engines
    for engine in others:
        try:
            return engine, compute(engine)
        except EngineRefusalError as why:
            _LOGGER.debug("table %s: not by %s: %s", table, engine.kind, why)
    return last, compute(last)
