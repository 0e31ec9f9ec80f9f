"""Materialized tables over the game's table, refreshed in this process, and what they have to contain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from storage_lib import InvalidInputError
from storage_lib.duckdb.duckdb_engine import DuckDbEngine
from storage_lib.materialized.definition.create_materialized import create_materialized
from storage_lib.materialized.engine import AnswerColumn, EngineRefusalError
from storage_lib.materialized.refresh_table import refresh_table
from storage_lib.schema.options.materialized_table import RefreshMode
from tests.game.player import Game

if TYPE_CHECKING:
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery
    from storage_lib.materialized.sources.source_tables import BoundQuery

Rows = list[Mapping[str, Any]]
_NAMES = {pa.string(): "string", pa.int64(): "bigint", pa.int32(): "int"}


@dataclass(frozen=True)
class Query:
    """A query with the types of its answer, which a session would find, and its answer over some rows."""

    text: str
    columns: Mapping[str, pa.DataType]
    answer: Callable[[Rows], Iterable[tuple[Any, ...]]]
    needs: str | None = None
    """A column that the table may lose."""


def _sums(rows: Rows) -> Iterable[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["p"]].append(row)
    for p, some in groups.items():
        numbers = [row["n"] for row in some if row["n"] is not None]
        most = [row["x"] for row in some if row["x"] is not None]
        yield p, len(some), sum(numbers) if numbers else None, max(most) if most else None


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
    """DuckDB, which is told the types that Spark would find. The game's tables are too small for accumulators."""

    query: Query = QUERIES[0]

    def answer_columns(self, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:
        """Return the columns that the query is written with."""
        return [AnswerColumn(pa.field(name, kind), _NAMES[kind]) for name, kind in self.query.columns.items()]

    def accumulated_query(self, bound: BoundQuery) -> AccumulatedQuery | str | None:
        return "the game keeps none"


def materialize(game: Game) -> None:
    """Create a materialized table, which is empty until its first refresh."""
    if not game.is_on_disk or len(game.answers) >= 2:
        return
    added = [name for name in game.model.columns if name.startswith("w")]
    query = _query_of(game.rng.choice(added)) if added and game.rng.random() < 0.5 else game.rng.choice(QUERIES)
    name = f"game.answer{game.number()}"
    game.told.append(f"materialize {query.text}")
    create_materialized(
        lambda: TypedEngine(query=query),
        game.catalog,
        name,
        query.text,
        primary_key=None,
        partition_keys=(),
        freshness=None,
        refresh_mode=RefreshMode.AUTO,
        options={},
        comment=None,
        if_not_exists=False,
        database=None,
    )
    game.answers[name] = query
    game.met("materialize")


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
    game.met(f"refresh, {result.mode}")
