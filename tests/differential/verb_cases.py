# ruff: noqa: S608  statements of our own
"""Random INSERT, INSERT OVERWRITE, UPDATE, DELETE and MERGE statements, in SQL that Spark and DuckDB share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

NAMES = ("k", "p", "n", "s")
_TYPES = ("BIGINT", "STRING", "BIGINT", "STRING")
_KEYS = 9
_PARTITIONS = ("x", "y", "z")
_WORDS = ("ant", "bee", "", "a%b", None)

VerbRow = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class VerbTable:
    """A table ``t`` with the columns ``NAMES``. ``key`` is empty for a table without a primary key."""

    name: str
    key: tuple[str, ...] = ()
    is_partitioned: bool = False
    bucket: int | None = None
    is_append_only: bool = False

    @property
    def create(self) -> str:
        columns = ", ".join(
            f"{name} {kind}{' NOT NULL' if name in self.key else ''}" for name, kind in zip(NAMES, _TYPES, strict=True)
        )
        key = f", PRIMARY KEY ({', '.join(self.key)}) NOT ENFORCED" if self.key else ""
        partition = " PARTITIONED BY (p)" if self.is_partitioned else ""
        options = {"log.system": "none"}
        if self.bucket is not None:
            options["bucket"] = str(self.bucket)
        if self.bucket == -1:
            # Small enough that a case has several buckets.
            options["dynamic-bucket.target-row-num"] = "3"
        if self.is_append_only:
            options["write-mode"] = "append-only"
        said = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        return f"CREATE TABLE t ({columns}{key}){partition} WITH ({said})"


VERB_TABLES = (
    VerbTable(name="fixed buckets", key=("k",), bucket=2),
    VerbTable(name="dynamic buckets", key=("k",), bucket=-1),
    VerbTable(name="partitions of fixed buckets", key=("p", "k"), is_partitioned=True, bucket=2),
    VerbTable(name="partitions of dynamic buckets", key=("p", "k"), is_partitioned=True, bucket=-1),
    VerbTable(name="keys that move between partitions", key=("k",), is_partitioned=True, bucket=-1),
    VerbTable(name="counted rows", is_partitioned=True),
    VerbTable(name="append-only", is_partitioned=True, is_append_only=True),
)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement. ``sql`` is for this library; DuckDB, whose table has no key, runs ``in_duckdb`` instead.

    ``upserts``: inserted rows replace those with the same key.
    """

    sql: str
    in_duckdb: tuple[str, ...]
    upserts: bool = False


def statements(rng: Random, table: VerbTable, count: int) -> Iterator[Statement]:
    """Yield ``count`` statements; the first one fills the table."""
    yield _insert(rng, table, rows_min=4)
    verbs = [_insert, _overwrite]
    if not table.is_append_only:
        verbs += [_update, _update, _delete, _merge, _merge, _merge]
    for _ in range(count - 1):
        yield rng.choice(verbs)(rng, table)


def _insert(rng: Random, table: VerbTable, rows_min: int = 1) -> Statement:
    rows = _rows(rng, table, rng.randint(rows_min, 7))
    if rng.random() < 0.3:
        rows = [(k, p, n, None) for k, p, n, _ in rows]
        sql = f"INSERT INTO t (n, k, p) SELECT n, k, p FROM ({_selects(rows)}) v"
    else:
        sql = f"INSERT INTO t {_selects(rows)}"
    return Statement(sql=sql, in_duckdb=(f"INSERT INTO t {_selects(rows)}",), upserts=True)


def _overwrite(rng: Random, table: VerbTable) -> Statement:
    """Return an INSERT OVERWRITE; without PARTITION it replaces the partitions of its rows."""
    if table.is_partitioned and table.key == ("k",):
        # A key that exists in another partition would move, which DuckDB's table does not model.
        return _insert(rng, table)
    rows = _rows(rng, table, rng.randint(1, 5))
    if table.is_partitioned and rng.random() < 0.5:
        part = rng.choice(_PARTITIONS)
        rows = [(k, part, n, s) for k, _, n, s in rows]
        rows = _unique(rows, table)
        inner = f"SELECT k, n, s FROM ({_selects(rows)}) v"
        sql = f"INSERT OVERWRITE t PARTITION (p = '{part}') {inner}"
    else:
        sql = f"INSERT OVERWRITE t {_selects(rows)}"
    gone = f"DELETE FROM t WHERE p IN (SELECT p FROM ({_selects(rows)}) v)" if table.is_partitioned else "DELETE FROM t"
    return Statement(sql=sql, in_duckdb=(gone, f"INSERT INTO t {_selects(rows)}"))


def _update(rng: Random, table: VerbTable) -> Statement:
    sql = f"UPDATE t SET {_assignments(rng, table, [])}{_where(rng)}"
    return Statement(sql=sql, in_duckdb=(sql,))


def _delete(rng: Random, table: VerbTable) -> Statement:
    del table
    sql = f"DELETE FROM t{_where(rng)}"
    return Statement(sql=sql, in_duckdb=(sql,))


def _merge(rng: Random, table: VerbTable) -> Statement:
    """Return a MERGE; no row of the table matches two source rows, which MERGE refuses."""
    by_key = rng.random() < 0.6
    rows = _rows(rng, table, rng.randint(1, 6))
    if not table.key:
        rows = list({row[0]: row for row in rows}.values())
    if by_key:
        on = " AND ".join(f"t.{name} = v.{name}" for name in table.key or ("k",))
        if rng.random() < 0.3:
            on += rng.choice((" AND t.n > 2", " AND v.n > 2", " AND t.s = v.s"))
    else:
        column = rng.choice(("n", "s"))
        rows = list({row[NAMES.index(column)]: row for row in rows}.values())
        on = f"t.{column} = v.{column}" if rng.random() < 0.7 else f"t.{column} IS NOT DISTINCT FROM v.{column}"
    chosen = rng.sample(_CLAUSES, rng.randint(1, 4))
    last = {what.removesuffix(" BY TARGET"): place for place, (what, _, _) in enumerate(chosen)}
    # A clause after one of the same kind without a condition would be unreachable.
    clauses = [
        f"WHEN {what}{_and(rng, names, always=last[what.removesuffix(' BY TARGET')] != place)} "
        f"THEN {action(rng, table)}"
        for place, (what, names, action) in enumerate(chosen)
    ]
    sql = f"MERGE INTO t USING ({_selects(rows)}) AS v ON {on} {' '.join(clauses)}"
    return Statement(sql=sql, in_duckdb=(sql,), upserts=True)


def _delete_clause(rng: Random, table: VerbTable) -> str:
    del rng, table
    return "DELETE"


def _update_clause(rng: Random, table: VerbTable) -> str:
    return f"UPDATE SET {_assignments(rng, table, ['v.n', 'coalesce(v.n, 0) + coalesce(t.n, 1)'])}"


def _update_alone(rng: Random, table: VerbTable) -> str:
    return f"UPDATE SET {_assignments(rng, table, [])}"


def _insert_clause(rng: Random, table: VerbTable) -> str:
    del table
    return rng.choice(
        (
            "INSERT (k, p, n, s) VALUES (v.k, v.p, v.n, v.s)",
            "INSERT (p, k, n) VALUES (v.p, v.k, v.n * 2)",
            "INSERT (s, p, k) VALUES (upper(v.s), v.p, v.k)",
        )
    )


_CLAUSES = (
    ("MATCHED", "tv", _delete_clause),
    ("MATCHED", "tv", _update_clause),
    ("MATCHED", "tv", _update_clause),
    ("NOT MATCHED", "v", _insert_clause),
    ("NOT MATCHED BY TARGET", "v", _insert_clause),
    ("NOT MATCHED BY SOURCE", "t", _delete_clause),
    ("NOT MATCHED BY SOURCE", "t", _update_alone),
)


def _and(rng: Random, names: str, *, always: bool) -> str:
    name = rng.choice(names)
    conditions = (f"{name}.n > 3", f"{name}.n IS NULL", f"{name}.s <> 'ant'", f"{name}.k % 2 = 0", f"{name}.p <> 'z'")
    return f" AND {rng.choice(conditions)}" if always or rng.random() < 0.5 else ""


def _assignments(rng: Random, table: VerbTable, more: list[str]) -> str:
    choices = {
        "n": ["t.n + 1", "NULL", "CASE WHEN t.n > 4 THEN t.k ELSE t.n * 2 END", *more, *more],
        "s": ["upper(t.s)", "coalesce(t.s, 'none')", "t.p || '-' || t.s"],
    }
    if "p" not in table.key:
        choices["p"] = ["'y'", "CASE WHEN t.n > 3 THEN 'x' ELSE t.p END"]
    names = rng.sample(list(choices), rng.randint(1, len(choices)))
    return ", ".join(f"{name} = {rng.choice(choices[name])}" for name in names)


def _where(rng: Random) -> str:
    conditions = (
        f"n > {rng.randrange(6)}",
        "n IS NULL OR s = 'ant'",
        f"NOT (n = {rng.randrange(6)})",
        f"k IN ({rng.randrange(_KEYS)}, {rng.randrange(_KEYS)}, NULL)",
        f"p = '{rng.choice(_PARTITIONS)}'",
        "n < (SELECT max(n) FROM t)",
        "EXISTS (SELECT 1 FROM t AS x WHERE x.n = t.k)",
        "s IS DISTINCT FROM 'bee'",
    )
    return f" WHERE {rng.choice(conditions)}" if rng.random() < 0.9 else ""


def _rows(rng: Random, table: VerbTable, count: int) -> list[VerbRow]:
    rows: list[VerbRow] = [
        (
            rng.randrange(_KEYS),
            rng.choice(_PARTITIONS),
            None if rng.random() < 0.2 else rng.randrange(8),
            rng.choice(_WORDS),
        )
        for _ in range(count)
    ]
    return _unique(rows, table)


def _unique(rows: list[VerbRow], table: VerbTable) -> list[VerbRow]:
    """Keep one row of each key."""
    if not table.key:
        return rows
    places = [NAMES.index(name) for name in table.key]
    return list({tuple(row[place] for place in places): row for row in rows}.values())


def _selects(rows: list[VerbRow]) -> str:
    """Return the rows as a query."""

    def selected(row: VerbRow) -> str:
        values = zip(row, _TYPES, NAMES, strict=True)
        return ", ".join(f"CAST({_literal(value)} AS {kind}) AS {name}" for value, kind, name in values)

    return " UNION ALL ".join(f"SELECT {selected(row)}" for row in rows)


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
