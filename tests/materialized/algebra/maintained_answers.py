"""A query's answer kept up to date on DuckDB by the compiled statements, and compared with the query itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Protocol

import duckdb
import sqlglot
from sqlglot import exp

from storage_lib.materialized.algebra import (
    RESULT,
    CompiledQuery,
    Dialect,
    ExactDuckDb,
    Moment,
    SourceTable,
    SqlDialect,
    Steps,
    ValueType,
    compile_query,
    read_type,
)

Row = tuple[Any, ...]
Bag = Counter[Row]
_TYPES = {"INT": "INTEGER", "STRING": "VARCHAR"}


class Rows(Protocol):
    """Makes rows of tables."""

    def first(self, table: str) -> dict[Row, Row]: ...

    def keyed(self, table: str) -> tuple[Row, Row]: ...


def name_of(table: str, moment: Moment) -> str:
    """Return the relation that holds a table at a moment."""
    return f"{table.partition('.')[2]}_{moment.value}" if table != RESULT else "result"


class MaintainedAnswer:
    """The answer of one query, as a bag of rows, over tables that change with seeded chance."""

    def __init__(self, text: str, tables: Sequence[SourceTable], made: Rows, rng: Random) -> None:
        self.text = text
        self.query: CompiledQuery = compile_query(text, tables, database=tables[0].name.partition(".")[0])
        self.dialect: Dialect = SqlDialect("duckdb")
        self.rows: Bag = Counter()
        self._refreshes = 0
        self._rng = rng
        self._made = made
        self._tables = {each.name: each for each in tables if each.name in self.query.sources}
        self._contents = {name: made.first(name.partition(".")[2]) for name in self._tables}
        self._before = {name: dict(rows) for name, rows in self._contents.items()}
        self._database = duckdb.connect()
        self._database.execute("SET threads = 1")
        self._original = self._over_newest(text)
        self._load()

    def write_exactly(self) -> None:
        """Write statements with Spark's types from now on. Raises ``NotExactError`` if that is not possible."""
        types = {
            (each.name, name.lower()): read_type(kind) for each in self._tables.values() for name, kind in each.columns
        }
        assert self.query.tree is not None
        of_answer = ExactDuckDb(lambda table, name: types[table, name.lower()]).types_of(self.query.tree)
        answer = {name: read_type(kind) for name, kind in zip(self.query.columns, of_answer, strict=True)}

        def type_of(table: str, name: str) -> ValueType:
            return answer[name] if table == RESULT else types[table, name.lower()]

        self.dialect = ExactDuckDb(type_of)

    def change_sources(self) -> None:
        """Insert, update and delete rows of some tables; some stay as they are."""
        self._before = {name: dict(rows) for name, rows in self._contents.items()}
        for name, rows in self._contents.items():
            if self._rng.random() < 0.2:
                continue
            for _ in range(self._rng.choice([1, 2, 4, 9, 12])):
                if rows and self._rng.random() < 0.4:
                    del rows[self._rng.choice(list(rows))]
                else:
                    key, row = self._made.keyed(name.partition(".")[2])
                    rows[key] = row
        self._load()

    def start(self) -> None:
        """Compute the whole answer by the compiled statement."""
        self.rows = Counter(self._fetched(self.query.full(name_of, dialect=self.dialect)))

    def ask_instead(self, text: str) -> None:
        """Compare with the answer of another query, which says of several right answers which one is expected."""
        self._original = self._over_newest(text)

    @property
    def source_row_count(self) -> int:
        """Number of rows of all sources together."""
        return sum(map(len, self._contents.values()))

    def counts_of_shared_rows(self) -> list[int]:
        """Return the number of rows of each shared relation of the next refresh."""
        self._store_result()
        steps = self.query.delta(name_of, list(self._contents), dialect=self.dialect)
        assert steps is not None
        counts = []
        shared = steps.shared_selects
        for number, (name, _) in enumerate(shared):
            several = ", ".join(f"{each} AS ({select})" for each, select in shared[: number + 1])
            [(count,)] = self._database.execute(f"WITH {several} SELECT count(*) FROM {name}").fetchall()
            counts.append(count)
        return counts

    def refresh(self, *, may_read_result: bool = True) -> None:
        """Apply the change of the answer."""
        changed = [name for name, rows in self._contents.items() if _bag(rows) != _bag(self._before[name])]
        self._store_result()
        # Both forms of the statement are right for any number of changed rows.
        self._refreshes += 1
        steps = self.query.delta(
            name_of, changed, dialect=self.dialect, may_read_result=may_read_result, are_few=self._refreshes % 2 == 1
        )
        self.rows = self.rows.copy()
        if steps is not None:
            with self.computed(steps) as select:
                for *row, weight in () if select is None else self._fetched(select):
                    self.rows[tuple(row)] += int(weight)
        self.rows = Counter({row: count for row, count in self.rows.items() if count})

    def expected(self) -> Bag:
        """Return the answer of the query as it is written."""
        return Counter(self._fetched(self._original))

    def violates_key(self) -> bool:
        """Return whether rows share the derived key, or one has NULL in it."""
        if self.query.key is None:
            return False
        places = [self.query.columns.index(name) for name in self.query.key]
        keys = [tuple(row[place] for place in places) for row in self.rows.elements()]
        return len(set(keys)) != len(keys) or any(value is None for key in keys for value in key)

    def _over_newest(self, text: str) -> str:
        original = sqlglot.parse_one(text, dialect="spark")
        names = {name.partition(".")[2]: name for name in self._tables}
        for table in list(original.find_all(exp.Table)):
            if table.name in names:
                alias = table.alias_or_name
                named = exp.to_table(name_of(names[table.name], Moment.AFTER))
                table.replace(exp.alias_(named, alias, table=True))
        return original.sql("duckdb")

    @contextmanager
    def computed(self, steps: Steps) -> Iterator[str | None]:
        """Give the body a SELECT of the rows: as one statement or, as refreshes do, over relations computed before."""
        if self._refreshes % 4 == 0:
            yield steps.text
            return
        kept = []

        def compute(name: str, select: str) -> bool:
            kept.append(name)
            [(count,)] = self._database.execute(f"CREATE TABLE {name} AS {select}").fetchall()
            return bool(count)

        yield steps.run(compute)
        for name in kept:
            self._database.execute(f"DROP TABLE {name}")

    def _fetched(self, text: str) -> list[Row]:
        return [tuple(map(rounded, row)) for row in self._database.execute(text).fetchall()]

    def _load(self) -> None:
        for name, table in self._tables.items():
            before, after = _bag(self._before[name]), _bag(self._contents[name])
            delta = [(*row, 1) for row in (after - before).elements()]
            delta += [(*row, -1) for row in (before - after).elements()]
            columns = []
            for column, kind in table.columns:
                bare = kind.removesuffix(" NOT NULL")
                columns.append(f"{column} {_TYPES.get(bare, bare)}")
            self._create(name_of(name, Moment.BEFORE), columns, list(before.elements()))
            self._create(name_of(name, Moment.AFTER), columns, list(after.elements()))
            self._create(name_of(name, Moment.DELTA), [*columns, "_weight BIGINT"], delta)

    def _create(self, name: str, columns: list[str], rows: list[Row]) -> None:
        self._database.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(columns)})")
        self._insert(name, rows)

    def _insert(self, name: str, rows: list[Row]) -> None:
        if rows:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            self._database.execute(f"INSERT INTO {name} VALUES {values}")

    def _store_result(self) -> None:
        whole = self.query.full(name_of, dialect=self.dialect)
        self._database.execute(f"CREATE OR REPLACE TABLE result AS {whole} LIMIT 0")
        self._insert("result", list(self.rows.elements()))


def _bag(rows: dict[Row, Row]) -> Bag:
    return Counter(rows.values())


def rounded(value: Any) -> Any:
    """Return averages as far as they do not depend on the order of rows; NaN as text, which equals itself."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    return value


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'"
