"""Materialized models follow the changes of what they read, and equal their queries after each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dbt.tests.util import run_dbt, write_file

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo

FIRST = "id,item,amount\n1,pen,2\n2,ink,9\n3,pen,3\n"
THEN = "id,item,amount\n1,pen,5\n3,ink,3\n4,cup,1\n"
KEPT = "select item, count(*) as n, sum(amount) as total from {{ ref('lines') }} group by item"
SETTINGS = "{{ config(materialized='materialized_table', target_lag=\"'1' MINUTE\") }} "


class TestMaterializedTables:
    """A project of a seed, a view and a materialized table over it."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"orders.csv": FIRST}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "lines.sql": "select id, upper(item) as item, amount from {{ ref('orders') }}",
            "kept.sql": f"{SETTINGS}{KEPT}",
        }

    def test_a_materialized_table_equals_its_query_after_each_run(self, project: TestProjInfo) -> None:
        assert len(run_dbt(["build"])) == 3
        assert self.rows(project) == [("INK", 1, 9), ("PEN", 2, 5)]

        write_file(THEN, project.project_root, "seeds", "orders.csv")
        run_dbt(["build"])
        assert self.rows(project) == [("CUP", 1, 1), ("INK", 1, 3), ("PEN", 1, 5)]

        (unchanged,) = run_dbt(["run", "--select", "kept"])
        assert "nothing to refresh" in unchanged.message

        write_file(
            f"{SETTINGS}{KEPT} having count(*) > 0 and sum(amount) > 2", project.project_root, "models", "kept.sql"
        )
        run_dbt(["run"])
        assert self.rows(project) == [("INK", 1, 3), ("PEN", 1, 5)]

        write_file("select id, item, amount from {{ ref('orders') }}", project.project_root, "models", "lines.sql")
        run_dbt(["run"])
        assert self.rows(project) == [("ink", 1, 3), ("pen", 1, 5)]

    @staticmethod
    def rows(project: TestProjInfo) -> list[tuple[object, ...]]:
        return project.run_sql(f"select item, n, total from {project.test_schema}.kept order by item", fetch="all")
