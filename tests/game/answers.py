"""Materialized tables over the game's table, refreshed in this process, and what they have to contain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa

from storage_lib import InvalidInputError
from storage_lib.duckdb import duckdb_engine
from storage_lib.duckdb.duckdb_engine import DuckDbEngine
from storage_lib.materialized.definition.create_materialized import create_materialized
from storage_lib.materialized.engine import AnswerColumn, EngineRefusalError
from storage_lib.materialized.refresh_table import refresh_table
from storage_lib.schema.options.materialized_table import RefreshMode
from tests.game import accumulated_answers
from tests.game.accumulated_answers import NAMES, accumulators_of, build_state
from tests.game.player import Game
from tests.support.faulty_file_io import SimulatedCrash

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.engine import RefreshRun
    from storage_lib.materialized.plan.accumulated_plan import AccumulatedPlan
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.filter.predicate import Predicate

ACCUMULATED_SHARE = 0.7
CRASHED_SHARE = 0.1
"""Share of refreshes before which another one crashes just before its commit, and after that of its accumulators."""

Rows = list[Mapping[str, Any]]


@dataclass(frozen=True)
class Query:
    """A query with the types of its answer, which a session would find, and its answer over some rows.

    ``keys``: types of the columns that it groups by, if accumulators can keep it; ``is_accumulated``: they do.
    """

    text: str
    columns: Mapping[str, pa.DataType]
    answer: Callable[[Rows], Iterable[tuple[Any, ...]]]
    needs: str | None = None
    """A column that the table may lose."""
    keys: tuple[pa.DataType, ...] = ()
    is_accumulated: bool = False


def _sums(rows: Rows) -> Iterable[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["p"]].append(row)
    for p, some in groups.items():
        numbers = [row["n"] for row in some if row["n"] is not None]
        most = [row["x"] for row in some if row["x"] is not None]
        yield p, len(some), sum(numbers) if numbers else None, max(most) if most else None


def _totals(rows: Rows) -> Iterable[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["t"], row["x"]].append(row["n"])
    for (t, x), values in groups.items():
        numbers = [value for value in values if value is not None]
        if len(numbers) != 2:
            yield t, x, len(values), sum(numbers) if numbers else None


def _pairs(rows: Rows) -> Iterable[tuple[Any, ...]]:
    for one in rows:
        for other in rows:
            if one["n"] is not None and one["n"] == other["n"] and one["k"] < other["k"]:
                yield one["k"], other["k"], one["t"]


def _partnerless(rows: Rows) -> Iterable[tuple[Any, ...]]:
    for one in rows:
        others = [other for other in rows if other["x"] is not None and other["x"] == one["n"]]
        yield from ((one["k"], other["s"]) for other in others or [{"s": None}])


def _kept_groups(rows: Rows) -> Iterable[tuple[Any, ...]]:
    counts: dict[Any, int] = defaultdict(int)
    for row in rows:
        counts[row["t"]] += 1
    yield from ((text, count) for text, count in counts.items() if count > 1)


QUERIES = (
    Query(
        "SELECT p, count(*) AS c, sum(n) AS total, max(x) AS most FROM t GROUP BY p",
        {"p": pa.string(), "c": pa.int64(), "total": pa.int64(), "most": pa.int32()},
        _sums,
    ),
    Query(
        "SELECT t, x, count(*) AS c, sum(n) AS total FROM t GROUP BY t, x HAVING count(n) <> 2",
        {"t": pa.string(), "x": pa.int32(), "c": pa.int64(), "total": pa.int64()},
        _totals,
        keys=(pa.string(), pa.int32()),
    ),
    Query(
        "SELECT k, s, n FROM t WHERE x > 0 OR t IS NULL",
        {"k": pa.int64(), "s": pa.int32(), "n": pa.int64()},
        lambda rows: (
            (row["k"], row["s"], row["n"])
            for row in rows
            if (row["x"] is not None and row["x"] > 0) or row["t"] is None
        ),
    ),
    Query(
        "SELECT t, count(*) AS c FROM t GROUP BY t HAVING count(*) > 1",
        {"t": pa.string(), "c": pa.int64()},
        _kept_groups,
        keys=(pa.string(),),
    ),
    Query(
        "SELECT a.k, b.k AS other, a.t FROM t AS a JOIN t AS b ON a.n = b.n AND a.k < b.k",
        {"k": pa.int64(), "other": pa.int64(), "t": pa.string()},
        _pairs,
    ),
    Query(
        "SELECT a.k, b.s FROM t AS a LEFT JOIN t AS b ON a.n = b.x",
        {"k": pa.int64(), "s": pa.int32()},
        _partnerless,
    ),
    Query(
        "SELECT DISTINCT p, x FROM t",
        {"p": pa.string(), "x": pa.int32()},
        lambda rows: {(r["p"], r["x"]) for r in rows},
        keys=(pa.string(), pa.int32()),
    ),
)


def _query_of(column: str) -> Query:
    """Return a query of a column that was added: it may be dropped, renamed, or dropped and added again."""
    return Query(
        f"SELECT k, {column} AS w FROM t WHERE {column} IS NOT NULL OR k < 6",  # noqa: S608  a drawn name
        {"k": pa.int64(), "w": pa.int32()},
        lambda rows: ((row["k"], row[column]) for row in rows if row[column] is not None or row["k"] < 6),
        needs=column,
    )


@dataclass(frozen=True, slots=True)
class TypedEngine(DuckDbEngine):
    """DuckDB, which is told the types that Spark would find, and builds the state of accumulators."""

    query: Query = QUERIES[0]

    def answer_columns(self, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:
        """Return the columns that the query is written with."""
        return [AnswerColumn(pa.field(name, kind), NAMES[kind]) for name, kind in self.query.columns.items()]

    def accumulated_query(self, bound: BoundQuery) -> AccumulatedQuery | str | None:
        """Return the accumulators of a query that they can keep."""
        return accumulators_of(bound, self.query.keys) if self.query.is_accumulated else "the game keeps none"

    def write_answer(
        self, run: RefreshRun, accumulated: AccumulatedPlan | None, where: Predicate | None = None
    ) -> Snapshot | None:
        """See ``Engine.write_answer``."""
        if accumulated is None:
            return DuckDbEngine.write_answer(self, run, accumulated, where)
        return build_state(run, accumulated)


def materialize(game: Game) -> None:
    """Create a materialized table, which is empty until its first refresh."""
    if not game.is_on_disk or len(game.answers) >= 2:
        return
    added = [name for name in game.model.columns if name.startswith("w")]
    query = _query_of(game.rng.choice(added)) if added and game.rng.random() < 0.5 else game.rng.choice(QUERIES)
    name = f"game.answer{game.number()}"
    if query.keys and game.rng.random() < ACCUMULATED_SHARE:
        query = replace(query, is_accumulated=True)
    game.told.append(f"materialize {query.text}{' with accumulators' if query.is_accumulated else ''}")
    create_materialized(
        lambda: TypedEngine(query=query),
        game.catalog,
        name,
        query.text,
        primary_key=None,
        partition_keys=(),
        freshness=None,
        refresh_mode=RefreshMode.AUTO,
        options={"accumulators.rows-min": "0"} if query.is_accumulated else {},
        comment=None,
        if_not_exists=False,
        database=None,
    )
    game.answers[name] = query
    game.met("materialize with accumulators" if query.is_accumulated else "materialize")


def drop_answer(game: Game) -> None:
    if game.answers:
        name = game.rng.choice(sorted(game.answers))
        game.told.append(f"drop {name}")
        game.catalog.drop_table(name)
        del game.answers[name]
        game.met("drop_answer")


def refresh(game: Game) -> None:
    """Refresh a materialized table, and compare it with the answer over the model's rows."""
    if not game.answers:
        return
    name = game.rng.choice(sorted(game.answers))
    query, full = game.answers[name], game.rng.random() < 0.1
    game.told.append(f"refresh {name}{' in full' if full else ''}")
    try:
        if game.rng.random() < CRASHED_SHARE:
            _crash(game, name, query)
        result = refresh_table([TypedEngine(query=query)], game.catalog.load_table(name), full=full)
    except InvalidInputError as refusal:
        if query.needs is None or query.needs in game.model.columns:
            raise
        game.told[-1] += f" (refused: {str(refusal)[:60]})"
        game.met("refresh without a column")
        return
    except EngineRefusalError as refusal:
        game.told[-1] += f" (refused: {refusal})"
        game.pairs.move_refused(game.drawn, "refresh", str(refusal))
        return
    game.told[-1] += f" ({result.mode})"
    if query.needs is not None and query.needs not in game.model.columns:
        game.fail(f"{name}: {query.text} was refreshed without its column", result, None)
    # Rows that a rollback has restored lack the columns that were added since.
    columns = game.model.columns
    rows: Rows = [{each: row.get(column) for each, column in columns.items()} for row in game.model.rows()]
    found = sorted(map(repr, (tuple(row.values()) for row in game.catalog.load_table(name).to_arrow().to_pylist())))
    wanted = sorted(map(repr, query.answer(rows)))
    if found != wanted:
        game.fail(f"{name}: {query.text}, {result}", found, wanted)
    game.met(f"refresh, {result.mode}{' of accumulators' if query.is_accumulated else ''}")


def _crash(game: Game, name: str, query: Query) -> None:
    """Refresh in a process that ends before the commit of the rows."""
    game.told[-1] += " after a crash"
    with (
        patch.object(duckdb_engine, "commit_difference", side_effect=SimulatedCrash),
        patch.object(accumulated_answers, "commit_difference", side_effect=SimulatedCrash),
        suppress(SimulatedCrash),
    ):
        refresh_table([TypedEngine(query=query)], game.catalog.load_table(name))
