"""Answers that are computed from accumulators equal the answers of the queries, on DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from storage_lib.materialized.algebra import Accumulators, ItemTypes, SqlDialect
from tests.materialized.algebra.maintained_answers import Bag, MaintainedAnswer, Row, name_of
from tests.materialized.algebra.random_queries import TABLES
from tests.materialized.algebra.small_rows import SmallRows
from tests.support.deep_tests import thinned

DUCKDB = SqlDialect("duckdb")
FROMS = (
    "orders o",
    "orders o JOIN category c ON o.cat = c.cat",
    "orders o LEFT JOIN category c ON o.cat = c.cat",
    "orders o FULL JOIN events e ON o.cat = e.k",
    "orders o WHERE EXISTS (SELECT 1 FROM events e WHERE e.k = o.cat)",
    "(SELECT DISTINCT cat, amount, city, id FROM orders) o",
    "(SELECT cat, city, max(amount) AS amount, min(id) AS id FROM orders GROUP BY cat, city) o",
    "(SELECT k AS cat, v AS amount, s AS city, k AS id FROM events) o",
    "(SELECT cat, amount, city, id FROM orders UNION ALL SELECT k, v, s, 1 FROM events) o",
)
KEYS = ("o.cat", "o.city", "o.amount % 7", "coalesce(o.city, 'none')", "o.cat, o.city")
ITEMS = (
    "count(*)",
    "count(o.amount)",
    "sum(o.amount)",
    "sum(o.amount + 1) * 2 - count(*)",
    "sum(o.amount) FILTER (WHERE o.city = 'c1')",
    "count(*) FILTER (WHERE o.amount > 10)",
    "count(CASE WHEN o.amount > 10 THEN 1 END)",
    "sum(CASE WHEN o.city = 'c0' THEN o.amount ELSE 0 END)",
    "avg(o.amount)",
    "sum(CAST(o.amount AS DECIMAL(12, 2)))",
    "coalesce(sum(o.amount), 5)",
)


def random_query(rng: Random) -> str:
    source = rng.choice(FROMS)
    items = ", ".join(f"{item} AS a{number}" for number, item in enumerate(rng.sample(ITEMS, rng.randint(1, 3))))
    if rng.random() < 0.2:
        return f"SELECT {items} FROM {source}"
    if rng.random() < 0.1:
        return f"SELECT DISTINCT o.cat, o.city FROM {source}"
    key = rng.choice(KEYS)
    shown = ", ".join(f"{each} AS k{number}" for number, each in enumerate(key.split(", ")) if "(" not in key)
    having = rng.choice(["", "", " HAVING count(*) > 1", " HAVING sum(o.amount) > 40"])
    columns = f"{shown}, {items}" if shown and rng.random() < 0.8 else items
    return f"SELECT {columns} FROM {source} GROUP BY {key}{having}"


class Accumulated:
    """An answer whose changes come from accumulators, stored by DuckDB under the names ``state`` and ``added``."""

    def __init__(self, answer: MaintainedAnswer) -> None:
        self.answer = answer
        found = answer.query.accumulators
        assert found is not None, answer.text
        self.accumulators: Accumulators = found
        self._database = answer._database
        described = self._database.execute(f"DESCRIBE {found.typed(name_of, dialect=DUCKDB)}").fetchall()
        kinds = {name: kind.lower() for name, kind, *_ in described}
        # DuckDB's types of values, and for arguments those that Spark has: only their digits matter.
        self.types = {
            name: ItemTypes(
                "int" if kinds[f"argument_{name}"] == "integer" else kinds[f"argument_{name}"], kinds[f"value_{name}"]
            )
            for name in found.item_names
        }
        assert found.refusal(self.types) is None
        self._store("state", found.whole(name_of, self.types, dialect=DUCKDB))
        self.rows = self._bag(found.answer("state", self.types, dialect=DUCKDB))

    def refresh(self) -> int:
        """Add the changes of the sources; return the number of groups that they touched."""
        found = self.accumulators
        # All sources are named, also those without a change.
        steps = found.change(name_of, self.answer.query.sources, self.types, dialect=DUCKDB)
        assert steps is not None
        with self.answer.computed(steps) as select:
            if select is None:
                return 0
            self._store("added", select)
        keys = found.key_columns
        same = " AND ".join(f"s.{key} IS NOT DISTINCT FROM a.{key}" for key in keys) or "TRUE"
        self._store("old", f"SELECT * FROM state s WHERE EXISTS (SELECT 1 FROM added a WHERE {same})")
        self._store("new", found.sum_of_states(["old", "added"], self.types, dialect=DUCKDB))
        touched = self._database.execute("SELECT * FROM added").fetchall()
        if not touched:
            # A global aggregate would add up nothing to a row of NULLs.
            return 0
        for *row, weight in self._fetched(found.answer_change("old", "new", self.types, dialect=DUCKDB)):
            self.rows[tuple(row)] += int(weight)
        self.rows = +self.rows if all(count >= 0 for count in self.rows.values()) else self.rows
        self._database.execute(f"DELETE FROM state s WHERE EXISTS (SELECT 1 FROM added a WHERE {same})")
        gone = " WHERE row_count <> 0" if keys else ""
        self._database.execute(f"INSERT INTO state SELECT * FROM new{gone}")
        return len(touched)

    def is_whole(self) -> bool:
        """Return whether the state is the one that is computed from the newest rows."""
        whole = self.accumulators.whole(name_of, self.types, dialect=DUCKDB)
        return self._bag("SELECT * FROM state") == self._bag(whole)

    def _store(self, name: str, text: str) -> None:
        self._database.execute(f"CREATE OR REPLACE TABLE {name} AS {text}")

    def _fetched(self, text: str) -> Iterable[Row]:
        return self.answer._fetched(text)

    def _bag(self, text: str) -> Bag:
        bag: Bag = Bag()
        bag.update(self._fetched(text))
        return bag


@pytest.mark.parametrize("seed", thinned(range(10), keep=3))
def test_answers_and_states_equal_those_of_the_newest_rows_after_every_refresh(seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not secrets
    touched = 0
    for _ in range(10):
        answer = MaintainedAnswer(random_query(rng), TABLES, SmallRows(rng), rng)
        accumulated = Accumulated(answer)
        assert accumulated.rows == answer.expected(), answer.text
        for _ in range(4):
            answer.change_sources()
            touched += accumulated.refresh()
            assert accumulated.rows == answer.expected(), answer.text
            assert accumulated.is_whole(), answer.text
    # Otherwise the comparisons above would prove little.
    assert touched >= 20


def test_sources_without_a_change_add_nothing() -> None:
    rng = Random(7)  # noqa: S311  chance, not secrets
    answer = MaintainedAnswer("SELECT cat, count(*) AS n FROM orders GROUP BY cat", TABLES, SmallRows(rng), rng)

    assert Accumulated(answer).refresh() == 0


def test_a_row_that_moves_between_groups_and_the_last_row_of_a_group_change_two_groups() -> None:
    rng = Random(7)  # noqa: S311  chance, not secrets
    answer = MaintainedAnswer("SELECT cat, sum(amount) AS s FROM orders GROUP BY cat", TABLES, SmallRows(rng), rng)
    rows = answer._contents["shop.orders"]
    rows.clear()
    rows[1,], rows[2,] = (1, None, 5, "c"), (2, 3, None, "c")
    answer._load()
    accumulated = Accumulated(answer)
    for row, expected in (
        ((1, 3, 5, "c"), {(3, 5): 1}),
        ((1, None, 8, "c"), {(None, 8): 1, (3, None): 1}),
    ):
        answer._before = {"shop.orders": dict(rows)}
        rows[1,] = row
        answer._load()
        assert accumulated.refresh() == 2
        assert accumulated.rows == expected == answer.expected()


def test_a_global_aggregate_has_one_row_also_over_no_rows() -> None:
    rng = Random(7)  # noqa: S311  chance, not secrets
    text = "SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS a FROM orders"
    answer = MaintainedAnswer(text, TABLES, SmallRows(rng), rng)
    accumulated = Accumulated(answer)
    rows = answer._contents["shop.orders"]
    for replacement in ({}, {(1,): (1, None, 4, None)}, {}):
        answer._before = {"shop.orders": dict(rows)}
        rows.clear()
        rows.update(replacement)
        answer._load()
        accumulated.refresh()
        assert accumulated.rows == answer.expected()
        assert accumulated.rows.total() == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT cat, max(amount) AS m, count(*) AS n FROM orders GROUP BY cat",
        "SELECT cat, count(DISTINCT amount) AS n FROM orders GROUP BY cat",
        "SELECT cat, sum(DISTINCT amount) AS n FROM orders GROUP BY cat",
        "SELECT cat, sum(CAST(amount AS DOUBLE)) AS s FROM orders GROUP BY cat",
        "SELECT cat, count(amount, city) AS n FROM orders GROUP BY cat",
        "SELECT o.cat, n FROM orders o JOIN (SELECT cat, count(*) AS n FROM orders GROUP BY cat) g ON o.cat = g.cat",
        "SELECT cat, count(*) AS n FROM orders GROUP BY cat HAVING count(*) > (SELECT max(cat) FROM category)",
        "SELECT id FROM orders",
    ],
)
def test_other_aggregates_and_aggregates_below_joins_are_not_accumulated(text: str) -> None:
    rng = Random(7)  # noqa: S311  chance, not secrets

    assert MaintainedAnswer(text, TABLES, SmallRows(rng), rng).query.accumulators is None


@pytest.mark.parametrize(
    ("item", "argument", "reason"),
    [
        ("sum(amount)", "bigint", None),
        ("sum(amount)", "decimal(38,6)", None),
        ("sum(amount)", "decimal(18,18)", None),
        ("sum(amount)", "decimal(20,7)", "the sums of SUM({}): DECIMAL(20,7) are not exact"),
        ("sum(amount)", "double", "the sums of SUM({}): DOUBLE are not exact"),
        ("avg(amount)", "decimal(15,2)", None),
        ("avg(amount)", "decimal(16,2)", "the averages of AVG({}): DECIMAL(16,2) are not exact"),
        ("avg(amount)", "bigint", "the averages of AVG({}): BIGINT are not exact"),
    ],
)
def test_types_whose_sums_are_not_exact_are_refused(item: str, argument: str, reason: str | None) -> None:
    rng = Random(7)  # noqa: S311  chance, not secrets
    found = MaintainedAnswer(f"SELECT {item} AS a FROM orders", TABLES, SmallRows(rng), rng).query.accumulators
    assert found is not None
    (name,) = found.item_names
    column = found.groups.items[0].argument

    refusal = found.refusal({name: ItemTypes(argument, "any")})

    assert column is not None
    assert refusal == (None if reason is None else reason.format(column.sql()))
