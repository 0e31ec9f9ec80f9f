# ruff: noqa: S608  queries of our own
"""Random row-wise queries in the SQL that Spark and DuckDB evaluate identically.

Excluded are division, `concat` (which treats NULL differently), and casts where the two would choose other types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random

from tests.differential.case import DETAILS, DIMENSION, SOURCE, Branch, Item, Source, StreamQuery

Expression = tuple[str, str]
"""SQL text and type of an expression."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """A FROM clause, expressions over its columns, and conditions on them.

    ``is_single``: it yields at most one row per row of the source. ``extra`` distinguishes the rows of one source
    row. ``hint`` is for Spark.
    """

    sql: str
    values: tuple[Expression, ...] = ()
    conditions: tuple[str, ...] = ()
    is_single: bool = True
    hint: str = ""
    extra: Expression | None = None


def random_tables(rng: Random) -> Tables:
    """Return the source, as ``s``, alone or joined with a table that is read as a snapshot."""
    alone = Tables(sql=f"{SOURCE} s")
    side = rng.choice(("", "LEFT "))
    name = "d.name"
    dimension = Tables(
        sql=f"{SOURCE} s {side}JOIN {DIMENSION} d ON s.cat = d.cat",
        values=(
            (name, "STRING"),
            (f"coalesce({name}, 'none')", "STRING"),
            ("d.low", "BIGINT"),
            ("s.n + d.low", "BIGINT"),
        ),
        conditions=("d.low > 2", "s.n >= d.low", f"{name} IS NOT NULL", f"{name} LIKE 'b%'", "d.low IS NULL"),
    )
    turned = Tables(
        sql=f"{DIMENSION} d RIGHT JOIN {SOURCE} s ON s.cat = d.cat AND d.low > 1",
        values=dimension.values,
        conditions=dimension.conditions,
    )
    first = Tables(
        sql=f"{DIMENSION} d JOIN {SOURCE} s ON s.cat = d.cat AND s.n < 10",
        values=dimension.values,
        conditions=dimension.conditions,
    )
    using = Tables(
        sql=f"{SOURCE} s JOIN (SELECT cat AS c, count(*) AS m FROM {DETAILS} GROUP BY cat) e ON s.cat = e.c",
        values=(("CAST(e.m AS BIGINT)", "BIGINT"),),
        conditions=("e.m > 1",),
    )
    details = Tables(
        sql=f"{SOURCE} s {side}JOIN {DETAILS} e ON s.cat = e.cat",
        values=(("e.note", "STRING"), ("e.tag", "BIGINT")),
        conditions=("e.tag > 1", "e.note IS NOT NULL", "e.tag < s.n"),
        is_single=False,
        extra=("coalesce(e.tag, -1)", "BIGINT"),
    )
    two = Tables(
        sql=f"{SOURCE} s {side}JOIN {DIMENSION} d ON s.cat = d.cat LEFT JOIN {DIMENSION} f ON s.n = f.low",
        values=(*dimension.values, ("f.name", "STRING")),
        conditions=(*dimension.conditions, "f.cat IS NOT NULL"),
        # `low` is not the dimension's key.
        is_single=False,
        extra=("coalesce(f.cat, -1)", "INT"),
    )
    semi = Tables(sql=f"{SOURCE} s LEFT SEMI JOIN {DIMENSION} d ON s.cat = d.cat")
    anti = Tables(sql=f"{SOURCE} s LEFT ANTI JOIN {DIMENSION} d ON s.cat = d.cat AND d.low > 2")
    with_null = Tables(
        sql=f"{SOURCE} s {side}JOIN {DIMENSION} d ON nullif(s.cat, 3) IS NOT DISTINCT FROM nullif(d.cat, 0)",
        values=dimension.values,
        conditions=dimension.conditions,
    )
    smaller = Tables(
        sql=f"{SOURCE} s {side}JOIN {DETAILS} e ON s.n >= e.tag AND (e.note = 'red' OR s.cat = e.cat)",
        values=details.values,
        conditions=details.conditions,
        is_single=False,
        extra=("coalesce(e.cat * 10 + e.tag, -1)", "BIGINT"),
    )
    one = Tables(
        sql=f"{SOURCE} s CROSS JOIN (SELECT min(low) AS m FROM {DIMENSION}) e",
        values=(("e.m", "BIGINT"), ("s.n - e.m", "BIGINT")),
        conditions=("s.n > e.m", "e.m IS NULL OR s.n IS DISTINCT FROM e.m"),
    )
    kinds = (alone, dimension, turned, first, using, details, two, semi, anti, with_null, smaller, one)
    made = rng.choices(kinds, weights=(8, 8, 1, 2, 1, 3, 2, 1, 1, 1, 1, 1))[0]
    is_broadcast = made in (dimension, first, details, semi) and rng.random() < 0.1
    return replace(made, hint=f"/*+ BROADCAST({'e' if made is details else 'd'}) */ ") if is_broadcast else made


def _nested(rng: Random) -> str:
    return rng.choice(
        (
            f"s.cat IN (SELECT cat FROM {DIMENSION} WHERE low > 3)",
            f"EXISTS (SELECT 1 FROM {DIMENSION} x WHERE x.cat = s.cat)",
            f"NOT EXISTS (SELECT 1 FROM {DETAILS} x WHERE x.cat = s.cat AND x.tag > 1)",
            f"s.n > (SELECT min(low) FROM {DIMENSION})",
            f"s.n NOT IN (SELECT tag FROM {DETAILS} WHERE tag > 1)",
            f"s.s NOT IN (SELECT note FROM {DETAILS})",
            f"s.cat IN (SELECT nullif(cat, 2) FROM {DIMENSION}) OR s.n > 6",
        )
    )


def values_of(source: Source) -> list[Expression]:
    """Return expressions on the source's columns; some of them do not determine their inputs."""
    found: list[Expression] = [
        ("s.n", "BIGINT"),
        ("s.n", "BIGINT"),
        ("s.cat", "INT"),
        ("s.s", "STRING"),
        ("s.u", "BIGINT"),
        ("s.n * 2 - 1", "BIGINT"),
        ("abs(s.n) % 3", "BIGINT"),
        ("upper(s.s)", "STRING"),
        ("s.s || '-' || CAST(s.n AS STRING)", "STRING"),
        ("CASE WHEN s.n > 5 THEN 'big' WHEN s.n IS NULL THEN NULL ELSE s.s END", "STRING"),
        ("CASE s.cat WHEN 1 THEN s.n WHEN 2 THEN s.u ELSE 0 END", "BIGINT"),
        ("s.n > 4", "BOOLEAN"),
        ("nullif(s.n, 3)", "BIGINT"),
        ("7", "INT"),
        ("CAST(NULL AS BIGINT)", "BIGINT"),
        ("s.n IS DISTINCT FROM s.cat", "BOOLEAN"),
        ("NOT (s.n > 4 OR s.s = 'bee')", "BOOLEAN"),
        ("CASE WHEN s.s <> 'ant' THEN s.n END", "BIGINT"),
    ]
    rare = ("BOOLEAN", "DATE", "DECIMAL(8, 2)", "TIMESTAMP(6)")
    found += [(f"s.{name}", kind) for name, kind in source.columns if kind in rare]
    found += [(f"s.{name}", kind) for name, kind in source.columns if name == source.partition]
    return found


def conditions_of(rng: Random, source: Source) -> list[str]:
    """Return conditions on columns that change, and on columns that don't."""
    kinds = dict(source.columns)
    found = [
        f"s.n > {rng.randrange(8)}",
        f"s.n <= {rng.randrange(3, 11)}",
        "s.n IS NOT NULL",
        "s.n IS NULL OR s.n % 2 = 0",
        f"s.cat IN (0, {rng.randrange(6)}, NULL)",
        "s.cat <> 2",
        "s.s LIKE 'a%'",
        "NOT (s.s = 'cow')",
        "CASE WHEN s.n > 5 THEN s.cat > 1 ELSE s.cat IS NULL OR s.cat < 4 END",
        f"s.u % 3 <> {rng.randrange(3)}",
        "coalesce(s.s, 'ant') >= 'bee'",
        f"s.n IS DISTINCT FROM {rng.randrange(8)}",
        "s.n IS NOT DISTINCT FROM s.cat",
        f"s.n NOT IN ({rng.randrange(8)}, {rng.randrange(8)})",
        "NOT (s.n > 5 AND s.s = 'ant')",
        "(s.n > 5) IS NULL OR s.cat BETWEEN 1 AND 3",
        "nullif(s.cat, 2) = s.cat",
    ]
    for name in source.key or ("k",):
        if kinds[name] in ("BIGINT", "INT"):
            found += [f"s.{name} > 0", f"s.{name} % 2 = 0"]
        elif kinds[name] == "STRING":
            found += [f"s.{name} <> 'k3'"]
    if source.partition:
        found += [f"s.{source.partition} <> 'y'"]
    found += [f"s.{name}" for name, kind in source.columns if kind == "BOOLEAN"]
    return found


def random_conditions(rng: Random, source: Source, tables: Tables) -> tuple[str, ...]:
    """Return up to three conditions for WHERE, combined by AND; often none."""
    pool = conditions_of(rng, source) + list(tables.conditions) * 2
    found = [rng.choice(pool) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
    if rng.random() < 0.15:
        found.append(_nested(rng))
    if rng.random() < 0.15:
        found.append(f"({rng.choice(pool)}) OR ({rng.choice(pool)})")
    return tuple(found)


def is_alone(items: Iterable[Item]) -> bool:
    """Return whether all columns can be computed from the source alone."""
    return not any(name in item.sql for item in items for name in ("d.", "e.", "f."))


def random_query(
    rng: Random, source: Source, tables: Tables, leading: Callable[[int], tuple[Item, ...]], *, branches: int
) -> StreamQuery:
    """Return a random query; ``leading`` returns the first columns of a branch, which the sink requires."""
    pool = values_of(source) + list(tables.values) * 2
    first = [rng.choice(pool) for _ in range(rng.randint(1, 4))]
    made = []
    for number in range(branches):
        # All branches of a union have the same types.
        alike = [
            (sql if not number else rng.choice([each for each in pool if each[1] == kind])[0], kind)
            for sql, kind in first
        ]
        items = (
            *leading(number),
            *(Item(sql=sql, type=kind, name=f"c{place}") for place, (sql, kind) in enumerate(alike)),
        )
        of_branch = tables
        if number and is_alone(items):
            # Another branch may read the source alone even if the first one joins it.
            of_branch = rng.choice((tables, Tables(sql=f"{SOURCE} s")))
        conditions = random_conditions(rng, source, of_branch)
        made.append(Branch(items=items, tables=of_branch.sql, conditions=conditions, hint=of_branch.hint))
    form = rng.choices(("plain", "subquery", "cte"), weights=(7, 1, 1))[0]
    return StreamQuery(branches=tuple(made), form=form)  # type: ignore[arg-type]
