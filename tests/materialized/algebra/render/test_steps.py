"""Statements in steps leave out what has no rows, and have the rows of the whole statement."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from storage_lib.materialized.algebra import ExactDuckDb, Moment, SqlDialect, Steps, read_type
from storage_lib.materialized.algebra.render.dialect import Dialect
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    Item,
    Named,
    OneRow,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    TopRows,
    Union,
    Window,
)

FOUR = "SELECT * FROM range(4) AS r(n)"
TABLES = {"numbers": FOUR, "others": FOUR, "nothing": f"{FOUR} WHERE FALSE"}
NUMBERS, NO_NUMBER = Scan("numbers", (("n", "a"),)), Scan("nothing", (("n", "b"),))
FEW, NONE = Named("few", ("a",)), Named("none", ("b",))
OTHER = Scan("others", (("n", "o"),))
DIALECTS: dict[str, Dialect] = {"duckdb": SqlDialect("duckdb"), "exact": ExactDuckDb(lambda *_: read_type("bigint"))}
EQUAL, EXACTLY = parse_one("a = b"), parse_one("b = p")
CROSSED, RENAMED = InnerJoin((NONE, OTHER)), Project(NONE, (("p", exp.column("b")),))
OF_CROSSED = Project(CROSSED, (("c", exp.column("o")),))
COUNT: tuple[Item, ...] = (("k", parse_one("count(*)")),)
ORDER = (exp.Ordered(this=exp.column("b"), nulls_first=True),)
WITH_READS: dict[str, tuple[Relation, set[str]]] = {
    "a union without one side": (
        Union((FEW, Project(CROSSED, (("c", exp.column("o")),))), ("u",)),
        {"numbers", "nothing"},
    ),
    "a union without both": (Union((NONE, RENAMED), ("u",)), {"nothing"}),
    "an anti join with no row": (SemiJoin(FEW, CROSSED, EQUAL, anti=True), {"numbers", "nothing"}),
    "a semi join with no row": (SemiJoin(OTHER, NONE, parse_one("o = b")), {"nothing"}),
    "an anti join of no row": (SemiJoin(NONE, OTHER, parse_one("o = b"), anti=True), {"nothing"}),
    "a left join with no row": (OuterJoin(FEW, NONE, EQUAL), {"numbers", "nothing"}),
    "a left join of no row": (OuterJoin(NONE, OTHER, parse_one("o = b")), {"nothing"}),
    "a full join of no row": (OuterJoin(NONE, OTHER, parse_one("o = b"), is_full=True), {"others", "nothing"}),
    "a full join of nothing": (OuterJoin(NONE, RENAMED, EXACTLY, is_full=True), {"nothing"}),
    "a global aggregate": (Aggregate(NONE, (), COUNT), {"nothing"}),
    "groups": (Aggregate(NONE, ("b",), COUNT), {"nothing"}),
    "distinct rows": (Aggregate(NONE, ("b",), (), is_distinct=True), {"nothing"}),
    "a window": (Window(NONE, ("b",), (("w", parse_one("count(*) OVER (PARTITION BY b)")),)), {"nothing"}),
    "first rows": (TopRows(NONE, ORDER, 2), {"nothing"}),
    "a join with one row": (InnerJoin((FEW, OneRow())), {"numbers"}),
}
SHARED: dict[str, Relation] = {
    "few": Filter(NUMBERS, parse_one("a > 1")),
    "none": Filter(NO_NUMBER, parse_one("b > 1")),
}


READ_BY_SPARK = {"a union without one side": {"others"}}


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    for name, select in TABLES.items():
        opened.execute(f"CREATE TABLE {name} AS {select}")
    return opened


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", WITH_READS)
def test_steps_have_the_rows_of_one_statement_and_read_what_may_have_rows(
    database: duckdb.DuckDBPyConnection, name: str, dialect: str
) -> None:
    last, reads = WITH_READS[name]
    asked: set[str] = set()

    rows = run(database, steps_of(last, DIALECTS[dialect], asked))

    # Spark gives a union the common type of its inputs, so all of them are in the statement.
    assert asked == (reads if dialect == "exact" else reads | READ_BY_SPARK.get(name, set()))
    whole = steps_of(last, DIALECTS[dialect], set()).text
    if rows is None:
        assert database.execute(whole).fetchall() == []
    else:
        assert Counter(rows) == Counter(database.execute(whole).fetchall())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_shared_relation_that_has_no_row_because_of_another_is_not_computed_from_tables(
    database: duckdb.DuckDBPyConnection, dialect: str
) -> None:
    shared: dict[str, Relation] = {**SHARED, "crossed": CROSSED}
    outer = OuterJoin(FEW, Named("crossed", ("b", "o")), EQUAL)
    selects: dict[str, str] = {}

    rows = run(database, steps_of(outer, DIALECTS[dialect], set(), shared), selects)

    assert rows == [(2, None, None), (3, None, None)]
    assert selects["crossed"].endswith("WHERE FALSE")


@pytest.mark.parametrize("other", ["INTEGER", "DECIMAL(18, 4)", "DOUBLE", "VARCHAR"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_union_keeps_its_types_without_the_rows_of_one_side(
    database: duckdb.DuckDBPyConnection, other: str, place: str
) -> None:
    wide = Project(InnerJoin((NONE, OTHER)), (("w", parse_one(f"CAST(o AS {other})")),))
    union = Union((wide, FEW) if place == "first" else (FEW, wide), ("u",))
    kind = Aggregate(Project(union, (("t", parse_one("typeof(u)")),)), ("t",), ())
    steps = steps_of(kind, DIALECTS["duckdb"], set())

    rows = run(database, steps)

    assert rows == database.execute(steps.text).fetchall()
    assert rows is not None
    assert len(rows) == 1


def steps_of(last: Relation, dialect: Dialect, asked: set[str], shared: dict[str, Relation] | None = None) -> Steps:
    """Return steps over shared relations of which those that ``last`` does not read are left out."""
    known: dict[str, Relation] = dict(SHARED) if shared is None else shared

    def view(table: str, _: Moment) -> str:
        asked.add(table)
        return table

    read = {name: rows for name, rows in known.items() if shared is not None or f"'{name}'" in repr(last)}
    columns = tuple((name, name) for name in last.outputs) or (("1", "one"),)
    return Steps(dialect.renderer(view), tuple(read.items()), last, columns)


def run(database: duckdb.DuckDBPyConnection, steps: Steps, selects: dict[str, str] | None = None) -> list[Any] | None:
    def compute(name: str, select: str) -> bool:
        if selects is not None:
            selects[name] = select
        [(count,)] = database.execute(f"CREATE TEMP TABLE {name} AS {select}").fetchall()
        return bool(count)

    select = steps.run(compute)
    rows = None if select is None else database.execute(select).fetchall()
    for name, _ in steps.shared:
        database.execute(f"DROP TABLE IF EXISTS temp.{name}")
    return rows
