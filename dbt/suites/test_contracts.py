"""Contracts: columns as they are declared, NOT NULL that no run violates, and a key. dbt's suites, and what they skip.

Their suites of DDL compare a text of PostgreSQL's; here the tables are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintsRollback,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseTableConstraintsColumnsEqual,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo

    from storage_lib import DynamicTable


class _Types:
    """Types of this adapter; fewer than the suites have, because each needs four runs."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "INT"],
            ["true", "boolean", "BOOLEAN"],
            ["cast('1' as decimal(5, 2))", "decimal", "DECIMAL"],
        ]


class TestTableColumns(_Types, BaseTableConstraintsColumnsEqual):
    """The columns of a table are those of its contract."""


class TestViewColumns(_Types, BaseViewConstraintsColumnsEqual):
    """The columns of a view are those of its contract."""

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [["1", "int", "INT"]]


class TestIncrementalColumns(_Types, BaseIncrementalConstraintsColumnsEqual):
    """The columns of an incremental model are those of its contract."""

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [["1", "int", "INT"]]


class _Messages:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["'id'", "no value in it"]


class TestTableRollback(_Messages, BaseConstraintsRollback):
    """A run with a null fails, and leaves the table as it was."""


class TestIncrementalRollback(_Messages, BaseIncrementalConstraintsRollback):
    """A run with a null fails, and leaves the table as it was."""


MODEL = "{{ config(materialized='table') }} select 'x' as note, 3 as amount, cast(1 as bigint) as id"
CONTRACT = """
models:
  - name: kept
    config: {contract: {enforced: true}}
    constraints: [{type: check, expression: "amount > 0"}, {type: primary_key, columns: [id]}]
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: amount, data_type: int, constraints: [{type: not_null}]}
      - {name: note, data_type: string}
"""


class TestDefinition:
    """The table of a contract."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"kept.sql": MODEL, "schema.yml": CONTRACT}

    def test_a_table_has_the_types_the_key_and_not_null_of_its_contract(self, project: TestProjInfo) -> None:
        _, output = run_dbt_and_capture(["run"])

        assert self.columns(project) == {"id": ("BIGINT", False), "amount": ("INT", False), "note": ("STRING", True)}
        assert "check" in output
        assert "not supported" in output

        first = self.table(project).uuid
        write_file(MODEL.replace("3 as", "4 as"), project.project_root, "models", "kept.sql")
        run_dbt(["run"])
        assert self.table(project).uuid == first
        assert project.run_sql(f"select amount from {project.test_schema}.kept", fetch="all") == [(4,)]

        write_file(
            CONTRACT.replace(
                "{name: note, data_type: string}", "{name: note, data_type: string, constraints: [{type: not_null}]}"
            ),
            project.project_root,
            "models",
            "schema.yml",
        )
        run_dbt(["run"])
        assert self.columns(project)["note"] == ("STRING", False)

    def test_two_different_keys_are_refused(self, project: TestProjInfo) -> None:
        write_file(
            CONTRACT.replace("contract:", "primary_key: amount, contract:"),
            project.project_root,
            "models",
            "schema.yml",
        )

        (result,) = run_dbt(["run"], expect_pass=False)

        assert "primary_key is ['amount'], but the contract's is ['id']" in result.message

    @staticmethod
    def table(project: TestProjInfo) -> DynamicTable:
        with project.adapter.connection_named("_test"):
            return project.adapter._catalog().load_table(f"{project.test_schema}.kept")

    def columns(self, project: TestProjInfo) -> dict[str, tuple[str, bool]]:
        schema = self.table(project).schema
        assert schema.primary_keys == ("id",)
        return {
            field.name: (str(field.type.with_nullable(nullable=True)), field.type.nullable) for field in schema.fields
        }
