"""dbt's example project, the Jaffle Shop: what runs with changes between them leave equals a build from nothing.

Needs a checkout of https://github.com/dbt-labs/jaffle_shop, which the environment variable ``JAFFLE_SHOP`` names.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner

from storage_lib import open_catalog
from storage_lib.spark import session
from storage_lib.sql import Session

CHECKOUT = os.environ.get("JAFFLE_SHOP", "")
SEEDS = ("raw_customers", "raw_orders", "raw_payments")
MODELS = ("stg_customers", "stg_orders", "stg_payments", "customers", "orders")
MATERIALIZATIONS = {
    "as the project has them": ("table", "view"),
    "materialized tables over views": ("materialized_table", "view"),
    "materialized tables over others": ("materialized_table", "materialized_table"),
    "materialized tables of decimals": ("materialized_table", "view"),
}
DECIMALS = "materialized tables of decimals"
"""Sums of doubles may differ in their last digits from run to run: only those of decimals are refreshed by changes."""

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="JAFFLE_SHOP names no checkout of the project")

CHANGES = """
insert into raw_customers values (101, 'Ada', 'L.'), (102, 'Bob', 'M.');
update raw_customers set first_name = 'Cy' where id = 1;
delete from raw_customers where id = 100;
insert into raw_orders values (100, 101, date '2018-04-10', 'placed'), (101, 1, date '2018-04-11', 'placed');
update raw_orders set status = 'returned', user_id = 102 where id in (1, 2);
delete from raw_orders where id in (50, 51, 52);
delete from raw_payments where order_id in (50, 51, 52);
insert into raw_payments values (114, 100, 'coupon', 250), (115, 101, 'gift_card', 1275), (116, 1, 'credit_card', 25);
update raw_payments set amount = amount + 350, payment_method = 'coupon' where id between 10 and 20;
"""


@dataclass
class Shop:
    """A copy of the project, and a warehouse."""

    place: Path
    which: str

    @property
    def warehouse(self) -> Path:
        return self.place / "warehouse"

    def __post_init__(self) -> None:
        shutil.copytree(CHECKOUT, self.place, ignore=shutil.ignore_patterns(".git", "target", "logs"))
        models, staging = MATERIALIZATIONS[self.which]
        if self.which == DECIMALS:
            path = self.place / "models" / "staging" / "stg_payments.sql"
            text = path.read_text()
            assert "amount / 100 as amount" in text
            path.write_text(text.replace("amount / 100 as amount", "cast(amount / 100 as decimal(10, 2)) as amount"))
        project = yaml.safe_load((self.place / "dbt_project.yml").read_text())
        project["models"]["jaffle_shop"] = {
            "+materialized": models,
            "staging": {"+materialized": staging},
        }
        (self.place / "dbt_project.yml").write_text(yaml.safe_dump(project))
        profile = {
            "type": "dynamic_tables",
            "warehouse": str(self.warehouse),
            "schema": "jaffle",
            "threads": 2,
            "spark": {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"},
        }
        (self.place / "profiles.yml").write_text(
            yaml.safe_dump({"jaffle_shop": {"target": "dev", "outputs": {"dev": profile}}})
        )

    def dbt(self, *words: str) -> Any:
        done = dbtRunner().invoke([*words, "--project-dir", str(self.place), "--profiles-dir", str(self.place)])
        assert done.success, (words, done.exception or [f"{each.node.name}: {each.message}" for each in done.result])
        return done.result

    def run_sql(self, script: str) -> None:
        for _ in Session(session("dbt"), open_catalog(str(self.warehouse)), database="jaffle").execute_script(script):
            pass

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        found = Session(session("dbt"), open_catalog(str(self.warehouse)), database="jaffle").execute(
            f"select * from {name}"
        )
        return sorted(zip(*(each.to_pylist() for each in found.to_arrow().columns), strict=True), key=repr)

    def write_seeds(self, of: Shop) -> None:
        """Write the rows that another shop's source tables have as the seeds of this one."""
        for name in SEEDS:
            rows = open_catalog(str(of.warehouse)).load_table(f"jaffle.{name}").to_arrow()
            with (self.place / "seeds" / f"{name}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(rows.column_names)
                writer.writerows(zip(*(each.to_pylist() for each in rows.columns), strict=True))


@pytest.mark.parametrize("which", MATERIALIZATIONS)
def test_runs_with_changes_between_leave_what_a_build_from_nothing_does(which: str, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop", which)
    shop.dbt("build")
    assert [len(shop.rows(name)) for name in ("customers", "orders")] == [100, 99]

    shop.run_sql(CHANGES)
    ran = shop.dbt("run")
    if which == DECIMALS:
        said = {each.node.name: each.message for each in ran if each.node.name in ("customers", "orders")}
        assert all("incremental refresh" in message for message in said.values()), said

    rebuilt = Shop(tmp_path / "rebuilt", which)
    rebuilt.write_seeds(shop)
    rebuilt.dbt("build")
    assert [len(rebuilt.rows(name)) for name in ("customers", "orders")] == [101, 98]
    for name in MODELS:
        assert shop.rows(name) == rebuilt.rows(name), name

    # Back to the seeds of the project, by dbt.
    first = Shop(tmp_path / "first", which)
    first.dbt("build")
    shop.dbt("build")
    for name in MODELS:
        assert shop.rows(name) == first.rows(name), name

    shop.dbt("docs", "generate")
    described = json.loads((shop.place / "target" / "catalog.json").read_text())["nodes"]
    assert {f"model.jaffle_shop.{name}" for name in MODELS} <= {*described}
    assert list(described["model.jaffle_shop.orders"]["columns"])[:2] == ["order_id", "customer_id"]
