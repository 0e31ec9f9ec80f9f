"""Builds on a branch of the tables: main is unchanged until the branch is published, or for ever."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from test_shop_project import MODELS, seed_files

from storage_lib import open_catalog

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo

    from storage_lib import Catalog

CHANGED = {
    # Another query of the same columns, other columns, rows that are added, a view, a new table, a materialized table.
    "plain.sql": """{{ config(materialized='table') }}
        select customer_id, upper(name) as name from {{ ref('stg_customers') }}""",
    "customers.sql": MODELS["customers.sql"].replace("as orders,", "as orders, count(l.amount) as payments,"),
    "orders.sql": MODELS["orders.sql"] + " where order_id <> 12",
    "stg_orders.sql": MODELS["stg_orders.sql"].replace(" status from", " upper(status) as status from"),
    "busy.sql": "{{ config(materialized='table') }} select * from {{ ref('customers') }} where orders > 1",
    "days.sql": MODELS["days.sql"].replace("count(*) as payments", "count(*) + 1 as payments"),
}
NAMES = ("plain", "customers", "orders", "stg_orders", "days", "lines", "by_day", "raw_orders")


class _Shop:
    """The shop on main in its first version, and a target `pr` with a branch."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return seed_files(1)

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        plain = CHANGED["plain.sql"].replace("upper(name) as name", "name")
        return {**MODELS, "plain.sql": plain}

    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema: str, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        main = {**dbt_profile_target, "schema": unique_schema}
        return {"test": {"outputs": {"default": main, "pr": {**main, "branch": "pr_42"}}, "target": "default"}}

    @pytest.fixture(autouse=True)
    def built(self, project: TestProjInfo) -> None:
        for name, text in self.first_models.items():
            write_file(text, project.project_root, "models", name)
        run_dbt(["build", "--full-refresh"])
        shutil.copytree(f"{project.project_root}/target", f"{project.project_root}/state", dirs_exist_ok=True)
        for name, text in CHANGED.items():
            write_file(text, project.project_root, "models", name)
        write_file(seed_files(2)["raw_orders.csv"], project.project_root, "seeds", "raw_orders.csv")

    @property
    def first_models(self) -> dict[str, str]:
        return {**MODELS, "plain.sql": CHANGED["plain.sql"].replace("upper(name) as name", "name")}


def rows(project: TestProjInfo, name: str) -> list[tuple[Any, ...]]:
    return sorted(project.run_sql(f"select * from {name}", fetch="all"), key=repr)


def warehouse(target: dict[str, Any]) -> Catalog:
    return open_catalog(str(target["warehouse"]))


class TestPublished(_Shop):
    """A branch that is published."""

    def test_main_changes_when_the_branch_is_published_and_not_before(
        self, project: TestProjInfo, dbt_profile_target: dict[str, Any]
    ) -> None:
        main = project.test_schema
        catalog, before = warehouse(dbt_profile_target), {name: rows(project, f"{main}.{name}") for name in NAMES}
        orders = catalog.load_table(f"{main}.orders").uuid

        for _ in range(2):  # the second build finds the branch
            run_dbt(["build", "--target", "pr", "--select", "state:modified+", "--state", "state"])

        assert {name: rows(project, f"{main}.{name}") for name in NAMES} == before
        assert not catalog.table_exists(f"{main}.busy")
        assert "pr_42" in catalog.load_table(f"{main}.plain").branches.list()
        # An unchanged model is read from main: what is built is what changed, and what depends on it.
        assert not catalog.views.exists(f"{main}__pr_42.stg_customers")
        branch = {
            name: rows(project, f"{main}.`{name}$branch_pr_42`" if is_in_place else f"{main}__pr_42.{name}")
            for name, is_in_place in {
                "plain": True, "orders": True, "by_day": True, "raw_orders": True,
                "customers": False, "stg_orders": False, "days": False, "lines": False, "busy": False,
            }.items()
        }  # fmt: skip
        assert ("ADA" in repr(branch["plain"]), "RETURNED" in repr(branch["lines"])) == (True, True)

        _, shown = run_dbt_and_capture(["run-operation", "publish_branch", "--target", "pr", "--args", "dry_run: true"])
        assert f"{main}.plain: 3 rows before, 3 after: 3 added, 3 deleted" in shown
        assert f"{main}.orders: 3 rows before, 5 after: 2 added, 1 changed" in shown
        assert "new column payments" in shown
        assert f"{main}.busy: a new table of" in shown
        assert {name: rows(project, f"{main}.{name}") for name in NAMES} == before

        _, shown = run_dbt_and_capture(["run-operation", "publish_branch", "--target", "pr"])
        (rest,) = {line.split("--select ")[1].split("`")[0] for line in shown.splitlines() if "--select " in line}
        assert {*rest.split()} == {"stg_orders", "days", "lines"}
        run_dbt(["run", "--select", *rest.split()])

        assert {name: rows(project, f"{main}.{name}") for name in branch} == branch
        assert catalog.load_table(f"{main}.orders").uuid == orders
        assert not any(catalog.load_table(name).branches.list() for name in catalog.list_tables(main))
        assert not catalog.database_exists(f"{main}__pr_42")


class TestRefused(_Shop):
    """A branch that is not published."""

    def test_a_branch_of_a_table_that_has_changed_is_refused_and_dropped(
        self, project: TestProjInfo, dbt_profile_target: dict[str, Any]
    ) -> None:
        main, catalog = project.test_schema, warehouse(dbt_profile_target)
        run_dbt(["build", "--target", "pr", "--select", "state:modified+", "--state", "state"])
        project.run_sql(f"insert into {main}.orders values (99, 1, 'elsewhere')")
        before = {name: rows(project, f"{main}.{name}") for name in NAMES}

        _, shown = run_dbt_and_capture(["run-operation", "publish_branch", "--target", "pr"], expect_pass=False)

        assert "has changed since branch 'pr_42' was made from it" in shown
        assert {name: rows(project, f"{main}.{name}") for name in NAMES} == before
        run_dbt(["run-operation", "drop_branch", "--target", "pr"])
        assert not any(catalog.load_table(name).branches.list() for name in catalog.list_tables(main))
        assert not catalog.database_exists(f"{main}__pr_42")
        assert {name: rows(project, f"{main}.{name}") for name in NAMES} == before

    def test_a_database_of_something_else_is_never_dropped(
        self, project: TestProjInfo, dbt_profile_target: dict[str, Any]
    ) -> None:
        main, catalog = project.test_schema, warehouse(dbt_profile_target)
        project.run_sql(f"create database {main}__pr_42")
        project.run_sql(f"create table {main}__pr_42.precious as select 1 as id")

        _, built = run_dbt_and_capture(["run", "--target", "pr", "--select", "busy"], expect_pass=False)
        _, dropped = run_dbt_and_capture(["run-operation", "drop_branch", "--target", "pr"], expect_pass=False)

        assert all("branch pr_42 did not create it" in text for text in (built, dropped))
        assert rows(project, f"{main}__pr_42.precious") == [(1,)]
        catalog.drop_database(f"{main}__pr_42", cascade=True)

    @pytest.mark.usefixtures("project")
    def test_operations_in_a_target_without_a_branch_are_refused(self) -> None:
        _, shown = run_dbt_and_capture(["run-operation", "drop_branch"], expect_pass=False)

        assert "this target has no branch" in shown


class TestSnapshotOnABranch(_Shop):
    """A snapshot, which dbt writes by the name of its table."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        text = "{{ config(strategy='check', unique_key='id', check_cols='all') }} select * from {{ ref('raw_orders') }}"
        return {"history.sql": f"{{% snapshot history %}} {text} {{% endsnapshot %}}"}

    def test_a_snapshot_is_refused_and_left_alone(self, project: TestProjInfo) -> None:
        before = rows(project, f"{project.test_schema}.history")

        (result,) = run_dbt(["snapshot", "--target", "pr"], expect_pass=False)

        assert "snapshots would write to main" in result.message
        assert rows(project, f"{project.test_schema}.history") == before
