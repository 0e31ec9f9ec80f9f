"""Three tables with a random history, and queries over them."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

QUERIES = {
    "filtered": "SELECT id, amount + 1 AS more FROM orders WHERE amount > 3",
    "joined": (
        "SELECT o.id, c.name, o.amount FROM orders o LEFT JOIN category c ON o.cat = c.cat WHERE o.amount IS NOT NULL"
    ),
    "grouped": (
        "SELECT c.name, count(*) AS n, sum(o.amount) AS total, max(o.amount) AS most FROM orders o "
        "JOIN category c ON o.cat = c.cat GROUP BY c.name HAVING count(*) > 1"
    ),
    "distinct_kinds": "SELECT DISTINCT kind FROM events UNION SELECT name FROM category",
    "counted": "SELECT kind, count(*) AS n FROM events GROUP BY kind",
    "without": "SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM category c WHERE c.cat = orders.cat)",
    "pairs": "SELECT a.id AS one, b.id AS other FROM orders a JOIN orders b ON a.cat = b.cat AND a.id < b.id",
    "chained": "SELECT n, count(*) AS kinds FROM counted GROUP BY n",
}


class ChangingSources:
    """Three changing tables; ``seed`` determines their history."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  a seeded history
        self.catalog = catalog
        self.create_orders()
        category = {"cat": "INT NOT NULL", "name": "STRING"}
        catalog.create_table("shop.category", category, primary_key=["cat"])
        catalog.create_table("shop.events", {"kind": "STRING"})

    def create_orders(self) -> None:
        columns = {"id": "INT NOT NULL", "cat": "INT", "amount": "BIGINT"}
        self.catalog.create_table("shop.orders", columns, primary_key=["id"], options={"bucket": "2"})

    def table(self, name: str) -> DynamicTable:
        return self.catalog.load_table(f"shop.{name}")

    def order(self) -> dict[str, object]:
        maybe = self.random.choice([None, *range(8)])
        return {"id": self.random.randrange(12), "cat": self.random.choice([None, 0, 1, 2, 3]), "amount": maybe}

    def orders(self) -> list[dict[str, object]]:
        rows = [self.order() for _ in range(self.random.randrange(1, 5))]
        return list({row["id"]: row for row in rows}.values())

    def upsert(self) -> None:
        self.table("orders").upsert(self.orders())

    def delete(self) -> None:
        self.table("orders").delete(f"id > {self.random.randrange(14)}")

    def upsert_category(self) -> None:
        cat = self.random.randrange(4)
        self.table("category").upsert([{"cat": cat, "name": self.random.choice(["x", "y", None])}])

    def delete_category(self) -> None:
        self.table("category").delete(f"cat = {self.random.randrange(4)}")

    def add_events(self) -> None:
        self.table("events").append([{"kind": self.random.choice("pqr")} for _ in range(3)])

    def take_events(self) -> None:
        self.table("events").delete(f"kind = '{self.random.choice('pqr')}'")

    def overwrite(self) -> None:
        self.table("orders").overwrite(self.orders(), partition={}, change_tracking=self.random.random() < 0.5)

    def compact(self) -> None:
        self.table(self.random.choice(["orders", "category", "events"])).compact()

    def roll_back(self) -> None:
        table = self.table("orders")
        newest = table.inspect.latest_snapshot_id()
        if newest is not None:
            oldest = table.inspect.earliest_snapshot_id() or 1
            tracked = self.random.random() < 0.5
            table.rollback_to(snapshot_id=self.random.randrange(oldest, newest + 1), change_tracking=tracked)

    def expire(self) -> None:
        self.table("orders").maintenance.expire_snapshots(retain_last=2)

    def recreate(self) -> None:
        self.catalog.drop_table("shop.orders")
        self.create_orders()

    def step(self, *, without: Collection[str] = ()) -> str:
        """Change a source at random; return what was done. Steps of the names ``without`` are not done."""
        steps: list[tuple[Callable[[], None], int]] = [
            (self.upsert, 6),
            (self.delete, 3),
            (self.upsert_category, 4),
            (self.delete_category, 2),
            (self.add_events, 3),
            (self.take_events, 2),
            (self.overwrite, 2),
            (self.compact, 2),
            (self.roll_back, 2),
            (self.expire, 1),
            (self.recreate, 1),
        ]
        actions, weights = zip(*[each for each in steps if each[0].__name__ not in without], strict=True)
        action = self.random.choices(actions, weights)[0]
        action()
        return action.__name__
