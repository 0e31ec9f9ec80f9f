"""Random queries of Spark SQL over three small tables, with every operator that a refresh can maintain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from storage_lib.materialized.algebra import SourceTable

ORDERS = SourceTable(
    "shop.orders",
    (("id", "INT NOT NULL"), ("cat", "INT"), ("amount", "INT"), ("city", "STRING")),
    ("id",),
)
CATEGORY = SourceTable("shop.category", (("cat", "INT NOT NULL"), ("name", "STRING"), ("low", "INT")), ("cat",))
EVENTS = SourceTable("shop.events", (("k", "INT"), ("v", "INT"), ("s", "STRING")))
TABLES = (ORDERS, CATEGORY, EVENTS)

INT, TEXT = "int", "text"


@dataclass(frozen=True, slots=True)
class Rows:
    """A relation in FROM: its text, its alias, and its columns with their kinds."""

    text: str
    alias: str
    columns: tuple[tuple[str, str], ...]

    def named(self, kind: str) -> list[str]:
        return [f"{self.alias}.{name}" for name, each in self.columns if each == kind]


class RandomQueries:
    """Writes queries with seeded chance. ``depth`` bounds how deep queries are nested."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._aliases = 0
        self._shared: list[tuple[str, str, tuple[tuple[str, str], ...]]] = []

    def query(self) -> str:
        """Return the text of a query, whose columns are called a, b, c, ..."""
        if self._chance(0.2):
            text, columns = self._select(2)
            self._shared.append(("shared", text, columns))
        text, _ = self._set_operation(3) if self._chance(0.15) else self._select(3)
        clause = ", ".join(f"{name} AS ({query})" for name, query, _ in self._shared)
        return f"WITH {clause} {text}" if clause else text

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    def _set_operation(self, depth: int) -> tuple[str, tuple[tuple[str, str], ...]]:
        kinds = [self._rng.choice([INT, INT, TEXT]) for _ in range(self._rng.randint(1, 2))]
        left, columns = self._select(depth - 1, kinds)
        right, _ = self._select(depth - 1, kinds)
        operation = self._rng.choice(["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        return f"({left}) {operation} ({right}){self._first_rows(columns)}", columns

    def _source(self, depth: int) -> Rows:
        alias = self._alias()
        if depth > 1 and self._chance(0.25):
            text, columns = self._set_operation(depth - 1) if self._chance(0.3) else self._select(depth - 1)
            return Rows(f"({text}) AS {alias}", alias, columns)
        if self._shared and self._chance(0.3):
            name, _, columns = self._shared[0]
            return Rows(f"{name} AS {alias}", alias, columns)
        table = self._rng.choice([ORDERS, ORDERS, CATEGORY, EVENTS])
        columns = tuple((name, TEXT if kind == "STRING" else INT) for name, kind in table.columns)
        return Rows(f"{table.name.partition('.')[2]} AS {alias}", alias, columns)

    def _select(self, depth: int, kinds: list[str] | None = None) -> tuple[str, tuple[tuple[str, str], ...]]:
        first = self._source(depth)
        tables, text = [first], f"FROM {first.text}"
        for _ in range(self._rng.choice([0, 0, 1, 1, 2])):
            more = self._source(depth)
            kind = self._rng.choice(
                [
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "LEFT SEMI JOIN",
                    "LEFT ANTI JOIN",
                ]
            )
            text += f" {kind} {more.text} ON {self._join_condition(tables, more)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                tables.append(more)
        where = [self._condition(tables, depth) for _ in range(self._rng.choice([0, 0, 1, 1, 2]))]
        if where:
            text += f" WHERE {' AND '.join(where)}"
        wanted = kinds or [self._rng.choice([INT, INT, TEXT]) for _ in range(self._rng.randint(1, 3))]
        shape = self._rng.choice(["rows", "rows", "groups", "groups", "distinct", "window", "global"])
        if shape == "groups":
            items, tail = self._groups(tables, wanted, depth)
        elif shape == "global" and TEXT not in wanted and kinds is None:
            items, tail = [self._aggregate(tables) for _ in wanted], ""
        elif shape == "window":
            items, tail = [self._window(tables, kind) for kind in wanted], ""
        else:
            items, tail = [self._value(tables, kind) for kind in wanted], ""
        names = "abcdefgh"
        written = ", ".join(f"{item} AS {names[n]}" for n, item in enumerate(items))
        distinct = "DISTINCT " if shape == "distinct" else ""
        columns = tuple((names[n], kind) for n, kind in enumerate(wanted))
        return f"SELECT {distinct}{written} {text}{tail}{self._first_rows(columns)}", columns

    def _first_rows(self, columns: tuple[tuple[str, str], ...]) -> str:
        """Return ORDER BY of all columns, so that no rows tie which differ, with LIMIT; or nothing."""
        if not self._chance(0.15):
            return ""
        order = [
            f"{name}{self._rng.choice(['', ' DESC'])}{self._rng.choice(['', '', ' NULLS FIRST', ' NULLS LAST'])}"
            for name, _ in self._rng.sample(columns, len(columns))
        ]
        return f" ORDER BY {', '.join(order)} LIMIT {self._rng.choice([1, 2, 3, 5, 8])}"

    def _column(self, tables: list[Rows], kind: str) -> str | None:
        found = [name for table in tables for name in table.named(kind)]
        return self._rng.choice(found) if found else None

    def _value(self, tables: list[Rows], kind: str) -> str:
        name = self._column(tables, kind)
        if kind == TEXT:
            if name is None:
                return f"concat('n', CAST({self._column(tables, INT)} AS STRING))"
            return self._rng.choice([name, name, f"upper({name})", f"coalesce({name}, 'none')"])
        if name is None:
            return f"length({self._column(tables, TEXT)})"
        other = self._column(tables, INT)
        forms = [name, name, name, f"{name} + {other}", f"coalesce({name}, 0)"]
        return self._rng.choice([*forms, f"CASE WHEN {name} > 30 THEN 1 ELSE {other} END", f"{name} % 7"])

    def _join_condition(self, tables: list[Rows], more: Rows) -> str:
        kind = INT if more.named(INT) and self._column(tables, INT) else TEXT
        left, right = self._column(tables, kind), self._column([more], kind)
        if left is None or right is None:
            left, right = self._value(tables, INT), self._value([more], INT)
        text = f"{left} = {right}"
        if self._chance(0.2) and kind == INT:
            text += f" AND {self._column(tables, INT)} < {self._column([more], INT)}"
        return text if not self._chance(0.05) else f"{left} < {right}"

    def _condition(self, tables: list[Rows], depth: int) -> str:
        value = self._value(tables, INT)
        simple: list[Callable[[], str]] = [
            lambda: f"{value} > {self._rng.randrange(60)}",
            lambda: f"{value} IS NOT NULL",
            lambda: f"({value} < 20 OR {self._value(tables, TEXT)} = 'c1')",
            lambda: f"{value} BETWEEN 3 AND 50",
            lambda: f"{value} IN (1, 2, 3, 40)",
        ]
        if depth <= 1 or self._chance(0.55):
            return self._rng.choice(simple)()
        return self._rng.choice([self._exists, self._in, self._scalar])(tables)

    def _exists(self, tables: list[Rows]) -> str:
        inner = self._source(1)
        condition = self._join_condition(tables, inner)
        if self._chance(0.4):
            condition += f" AND {self._condition([inner], 1)}"
        return f"{self._rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {inner.text} WHERE {condition})"

    def _in(self, tables: list[Rows]) -> str:
        negated = self._rng.choice(["", "NOT "])
        if self._chance(0.4):
            inner = self._source(1)
            where = self._join_condition(tables, inner)
            query = f"SELECT {self._value([inner], INT)} FROM {inner.text} WHERE {where}"
            return f"{self._value(tables, INT)} {negated}IN ({query})"
        text, _ = self._select(1, [INT])
        return f"{self._value(tables, INT)} {negated}IN ({text})"

    def _scalar(self, tables: list[Rows]) -> str:
        inner = self._source(1)
        value = self._rng.choice(["max", "min", "sum", "count"])
        outer, own = self._column(tables, INT), self._column([inner], INT)
        where = ""
        if outer and own and self._chance(0.6):
            where = f" WHERE {own} = {outer}"
        aggregate = f"{value}({self._value([inner], INT)})"
        expression = self._rng.choice([aggregate, f"{aggregate} + 1", f"coalesce({aggregate}, 5)"])
        return f"{self._value(tables, INT)} >= (SELECT {expression} FROM {inner.text}{where})"

    def _aggregate(self, tables: list[Rows]) -> str:
        value = self._value(tables, INT)
        text = self._value(tables, TEXT)
        return self._rng.choice(
            [
                "count(*)",
                f"count({value})",
                f"count(DISTINCT {text})",
                f"sum({value})",
                f"sum({value})",
                f"min({value})",
                f"max({value})",
                f"sum({value}) + count(*)",
                f"sum({value}) FILTER (WHERE {value} > 10)",
                f"count(CASE WHEN {value} > 10 THEN 1 END)",
            ]
        )

    def _groups(self, tables: list[Rows], wanted: list[str], depth: int) -> tuple[list[str], str]:
        items, keys = [], []
        for kind in wanted:
            if kind == TEXT or self._chance(0.4):
                keys.append(self._value(tables, kind))
                items.append(keys[-1])
            else:
                items.append(self._aggregate(tables))
        if not keys or self._chance(0.2):
            keys.append(self._value(tables, self._rng.choice([INT, TEXT])))
        tail = f" GROUP BY {', '.join(dict.fromkeys(keys))}"
        if self._chance(0.3):
            tail += f" HAVING {self._rng.choice(['count(*) > 1', f'sum({self._value(tables, INT)}) > 40'])}"
        return items, tail

    def _window(self, tables: list[Rows], kind: str) -> str:
        if kind == TEXT:
            return self._value(tables, kind)
        partition = self._value(tables, self._rng.choice([INT, TEXT]))
        value = self._value(tables, INT)
        return self._rng.choice(
            [
                f"rank() OVER (PARTITION BY {partition} ORDER BY {value})",
                f"dense_rank() OVER (PARTITION BY {partition} ORDER BY {value} DESC)",
                f"sum({value}) OVER (PARTITION BY {partition})",
                f"count(*) OVER (PARTITION BY {partition} ORDER BY {value})",
                f"max({value}) OVER (PARTITION BY {partition}, {self._value(tables, INT)})",
                value,
            ]
        )
