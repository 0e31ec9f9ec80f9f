"""From which columns of other models each column of a model is computed, by `dbt run-operation column_lineage`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from test_shop_project import MODELS, seed_files

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo


class TestColumnLineage:
    """The shop, with an ephemeral model and one whose query is not traced."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return seed_files(1)

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            **MODELS,
            "placed.sql": """{{ config(materialized='ephemeral') }}
                select * from {{ ref('stg_orders') }} where status = 'placed'""",
            "totals.sql": """
                select 'placed' as kind, count(*) as n, min(p.order_id) as first from {{ ref('placed') }} p
                union all
                select 'all', count(*), max(o.order_id) from {{ ref('orders') }} o""",
            "pairs.sql": "select t.* from values (1, 2) as t (a, b)",
        }

    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema: str, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        main = {**dbt_profile_target, "schema": unique_schema}
        return {"test": {"outputs": {"default": main, "pr": {**main, "branch": "pr_7"}}, "target": "default"}}

    @pytest.fixture(scope="class")
    def built(self, project: TestProjInfo) -> TestProjInfo:
        run_dbt(["build"])
        return project

    def test_each_column_names_the_columns_that_it_is_computed_from(self, built: TestProjInfo) -> None:
        run_dbt(["run-operation", "column_lineage"])

        found = self.written(built)
        main = built.test_schema
        assert found["model.test.stg_payments"] == {
            "payment_id": [f"{main}.raw_payments.id"],
            "order_id": [f"{main}.raw_payments.order_id"],
            "amount": [f"{main}.raw_payments.cents"],
        }
        assert found["model.test.lines"]["amount"] == [f"{main}.stg_payments.amount"]
        assert found["model.test.days"] == {
            "day": [f"{main}.lines.day"],
            "payments": [],
            "amount": [f"{main}.lines.amount"],
        }
        assert found["model.test.customers"]["orders"] == [f"{main}.lines.order_id"]
        assert found["model.test.orders"]["status"] == [f"{main}.stg_orders.status"]
        # An ephemeral model is part of the query.
        assert found["model.test.totals"] == {
            "kind": [],
            "n": [],
            "first": [f"{main}.orders.order_id", f"{main}.stg_orders.order_id"],
        }
        assert "model.test.placed" not in found

    def test_one_model_is_printed_by_column(self, built: TestProjInfo) -> None:
        _, printed = run_dbt_and_capture(["run-operation", "column_lineage", "--args", "model: days"])

        assert f"days.amount <- {built.test_schema}.lines.amount" in printed
        assert "days.payments <- no column" in printed
        assert [*self.written(built)] == ["model.test.days"]

    def test_a_branch_names_what_its_models_read(self, built: TestProjInfo) -> None:
        run_dbt(["run", "--target", "pr", "--select", "orders"])
        run_dbt(["compile", "--target", "pr", "--select", "totals"])

        run_dbt(["run-operation", "column_lineage", "--target", "pr", "--args", "model: totals"])

        assert self.written(built)["model.test.totals"]["first"] == [
            f"{built.test_schema}.orders$branch_pr_7.order_id",
            f"{built.test_schema}.stg_orders.order_id",
        ]

    @pytest.mark.usefixtures("project")
    def test_a_model_that_is_not_there_is_refused(self) -> None:
        words = ["run-operation", "column_lineage", "--args", "model: nowhere"]
        _, printed = run_dbt_and_capture(words, expect_pass=False)

        assert "the project has no model nowhere" in printed

    def test_a_model_that_is_not_compiled_says_so(self, project: TestProjInfo) -> None:
        shutil.rmtree(Path(project.project_root) / "target" / "compiled", ignore_errors=True)

        _, printed = run_dbt_and_capture(["run-operation", "column_lineage"], expect_pass=False)

        assert "run dbt compile first" in printed

    @staticmethod
    def written(project: TestProjInfo) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((Path(project.project_root) / "target/column_lineage.json").read_text())
        return found
