"""A small shop: what is built by several runs equals a rebuild, whatever stops them, and however many run at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.util import run_dbt, write_file

from storage_lib import open_catalog
from storage_lib.sql import Session

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo

CUSTOMERS = ["id,name", "1,Ada\n2,Bob\n3,Cy\n", "1,Ada\n3,Cyra\n4,Di\n"]
ORDERS = [
    "id,customer_id,day,status",
    "10,1,2024-01-01,placed\n11,2,2024-01-01,shipped\n12,1,2024-01-02,placed\n",
    "10,1,2024-01-01,returned\n12,1,2024-01-02,shipped\n13,4,2024-01-03,placed\n14,3,2024-01-02,placed\n",
]
PAYMENTS = [
    "id,order_id,cents",
    "100,10,500\n101,11,700\n102,12,250\n",
    "100,10,500\n102,12,250\n103,12,100\n104,13,900\n105,14,1\n",
]
SEEDS = {"raw_customers": CUSTOMERS, "raw_orders": ORDERS, "raw_payments": PAYMENTS}
MODELS = {
    "stg_customers.sql": "select id as customer_id, name from {{ ref('raw_customers') }}",
    "stg_orders.sql": """
        select id as order_id, customer_id, cast(day as date) as day, status from {{ ref('raw_orders') }}""",
    "stg_payments.sql": "select id as payment_id, order_id, cents / 100 as amount from {{ ref('raw_payments') }}",
    "lines.sql": """{{ config(materialized='materialized_table', target_lag='downstream') }}
        select o.order_id, o.customer_id, o.day, o.status, p.amount
        from {{ ref('stg_orders') }} o join {{ ref('stg_payments') }} p on o.order_id = p.order_id""",
    "days.sql": """{{ config(materialized='materialized_table', target_lag="'5' MINUTE") }}
        select day, count(*) as payments, sum(amount) as amount from {{ ref('lines') }} group by day""",
    "customers.sql": """{{ config(materialized='table') }}
        select c.customer_id, c.name, count(distinct l.order_id) as orders, coalesce(sum(l.amount), 0) as amount
        from {{ ref('stg_customers') }} c left join {{ ref('lines') }} l on l.customer_id = c.customer_id
        group by c.customer_id, c.name""",
    "orders.sql": """{{ config(materialized='incremental', unique_key='order_id', primary_key='order_id') }}
        select order_id, customer_id, status from {{ ref('stg_orders') }}""",
    "by_day.sql": """
        {{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day') }}
        select customer_id, amount, cast(day as string) as day from {{ ref('lines') }}""",
    "schema.yml": """
models:
  - name: customers
    columns: [{name: customer_id, data_tests: [unique, not_null]}]
  - name: days
    columns: [{name: day, data_tests: [unique, not_null]}]
""",
}
BUILT = ("stg_customers", "stg_orders", "stg_payments", "lines", "days", "customers")
"""Models that hold nothing of earlier runs; the incremental ones keep rows that their sources have lost."""


def seed_files(version: int) -> dict[str, str]:
    return {f"{name}.csv": f"{texts[0]}\n{texts[version]}" for name, texts in SEEDS.items()}


class _Shop:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return seed_files(1)

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @staticmethod
    def change(project: TestProjInfo, version: int) -> None:
        for name, text in seed_files(version).items():
            write_file(text, project.project_root, "seeds", name)

    @staticmethod
    def rows(project: TestProjInfo, *names: str) -> dict[str, list[tuple[Any, ...]]]:
        return {
            name: sorted(project.run_sql(f"select * from {project.test_schema}.{name}", fetch="all"), key=repr)
            for name in names
        }


class TestBuiltTwice(_Shop):
    """Runs with changes between them."""

    def test_what_two_builds_leave_equals_a_rebuild(self, project: TestProjInfo) -> None:
        run_dbt(["build"])
        self.change(project, 2)
        run_dbt(["build"])
        twice = self.rows(project, *BUILT, "orders", "by_day")
        # An order that its source has lost stays in an incremental model, as dbt has it.
        assert (11, 2, "shipped") in twice["orders"]

        run_dbt(["build", "--full-refresh"])
        rebuilt = self.rows(project, *BUILT, "orders", "by_day")
        assert {name: twice[name] for name in BUILT} == {name: rebuilt[name] for name in BUILT}
        assert twice["orders"] == sorted([*rebuilt["orders"], (11, 2, "shipped")], key=repr)
        assert {day for *_, day in twice["by_day"]} == {day for *_, day in rebuilt["by_day"]}

    def test_a_column_that_a_source_has_lost_fails_its_model_and_leaves_the_table(self, project: TestProjInfo) -> None:
        before = self.rows(project, "customers")
        write_file(
            "select id as customer_id from {{ ref('raw_customers') }}",
            project.project_root,
            "models",
            "stg_customers.sql",
        )

        results = run_dbt(["run"], expect_pass=False)

        messages = {each.node.name: each.message for each in results if each.status == "error"}
        assert list(messages) == ["customers"]
        assert "name" in messages["customers"]
        assert self.rows(project, "customers") == before


class TestInterrupted(_Shop):
    """A process that crashes between two statements."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {name: MODELS[name] for name in ("stg_customers.sql", "stg_orders.sql", "orders.sql")} | {
            "customers.sql": "{{ config(materialized='table') }} select * from {{ ref('stg_customers') }}",
            "strict.sql": "{{ config(materialized='table') }} select customer_id, name from {{ ref('stg_customers') }}",
            "schema.yml": """
models:
  - name: strict
    config: {contract: {enforced: true}}
    columns:
      - {name: customer_id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: name, data_type: string}
""",
        }

    def test_no_half_table_is_ever_visible(self, project: TestProjInfo, monkeypatch: pytest.MonkeyPatch) -> None:
        names = ("customers", "orders", "strict")
        run_dbt(["seed"])
        allowed: dict[str, set[Any]] = {name: {None} for name in names}
        whole = {"customers": 3, "orders": 3, "strict": 3}
        executed = Session.execute_script
        for last in range(40):
            left = last

            def until_death(session: Session, text: str, *arguments: Any, **more: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise RuntimeError("the process was killed")
                return executed(session, text, *arguments, **more)

            with monkeypatch.context() as killed:
                killed.setattr(Session, "execute_script", until_death)
                results = run_dbt(["run", "--full-refresh", "--threads", "1"], expect_pass=None)
            for name in names:
                assert self.count(project, name) in {whole[name], *allowed[name]}, (last, name)
            if all(each.status == "success" for each in results):
                break
        else:
            pytest.fail("the run never ended")
        assert last > 3

    @staticmethod
    def count(project: TestProjInfo, name: str) -> int | None:
        with project.adapter.connection_named("_test"):
            catalog = project.adapter._catalog()
        full = f"{project.test_schema}.{name}"
        return catalog.load_table(full).to_arrow().num_rows if catalog.table_exists(full) else None


class TestTwoRunsAtOnce(_Shop):
    """Two processes over one warehouse."""

    def test_two_runs_at_once_leave_whole_tables(
        self, project: TestProjInfo, dbt_profile_target: dict[str, Any], profiles_root: Path
    ) -> None:
        run_dbt(["seed"])
        words = [str(Path(sys.executable).with_name("dbt")), "run", "--profiles-dir", str(profiles_root)]
        words += ["--project-dir", str(project.project_root)]
        targets = [f"--target-path={project.project_root}/target_{each}" for each in "ab"]
        running = [
            subprocess.Popen(
                [*words, target, f"--log-path={target.partition('=')[2]}"], stdout=subprocess.PIPE, text=True
            )
            for target in targets
        ]
        printed = [each.communicate()[0] for each in running]

        # One of them may have failed, loudly, where the other was faster.
        assert 0 in {each.returncode for each in running} or all("Error" in text for text in printed), printed
        run_dbt(["run"])
        assert len(self.rows(project, "customers")["customers"]) == 3
        assert len(self.rows(project, "orders")["orders"]) == 3
        tables = open_catalog(str(dbt_profile_target["warehouse"])).list_tables(project.test_schema)
        assert {"customers", "orders", "lines", "days", "by_day"} <= {each.partition(".")[2] for each in tables}


class TestWrongWarehouse(_Shop):
    """A profile that names something else."""

    @pytest.mark.parametrize(("warehouse", "said"), [("{here}/a_file", "a_file"), ("gopher://x/y", "gopher")])
    def test_a_wrong_warehouse_is_named(self, project: TestProjInfo, tmp_path: Path, warehouse: str, said: str) -> None:
        (tmp_path / "a_file").write_text("not a warehouse")
        profile = (
            f"test:\n  target: default\n  outputs:\n    default:\n      type: dynamic_tables\n      schema: s\n"
            f"      threads: 1\n      warehouse: {warehouse.format(here=tmp_path)}\n"
        )
        (tmp_path / "profiles.yml").write_text(profile)
        done = subprocess.run(
            [str(Path(sys.executable).with_name("dbt")), "seed", "--profiles-dir", str(tmp_path)],
            cwd=project.project_root,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode != 0
        assert said in done.stdout
        assert (tmp_path / "a_file").read_text() == "not a warehouse"
