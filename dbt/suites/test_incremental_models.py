"""Suites of incremental models that dbt publishes for its adapters: changes of columns, merges, and microbatches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dbt.tests.adapter.basic.test_incremental import BaseIncrementalBadStrategy, BaseIncrementalNotSchemaChange
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.util import patch_microbatch_end_time, run_dbt

if TYPE_CHECKING:
    from dbt.tests.fixtures.project import TestProjInfo

EVENTS = """
{{ config(materialized='table', event_time='event_time') }}
select 1 as id, timestamp '2020-01-01 00:00:00+00:00' as event_time
union all
select 2 as id, timestamp '2020-01-02 00:00:00+00:00' as event_time
union all
select 3 as id, timestamp '2020-01-03 00:00:00+00:00' as event_time
"""


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    pass


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


class TestPredicatesOfDeleteInsert(BaseIncrementalPredicates):
    pass


class TestOnSchemaChange(BaseIncrementalOnSchemaChange):
    """The columns of a table without a primary key can't change."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+primary_key": "id"}}


class TestMicrobatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        return EVENTS

    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project: TestProjInfo) -> str:
        values = ", ".join(f"({day}, timestamp '2020-01-0{day} 00:00:00+00:00')" for day in (4, 5))
        return f"insert into {project.test_schema}.input_model (id, event_time) values {values}"


class TestMicrobatchReplacesABatch(BaseMicrobatch):
    """A batch is replaced as a whole, with a key and without: also rows that its source has lost."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = (
            "materialized='incremental', incremental_strategy='microbatch', event_time='event_time', batch_size='day'"
        )
        begin = "begin=modules.datetime.datetime(2020, 1, 1, 0, 0, 0)"
        query = "select * from {{ ref('input_model') }}"
        return {
            "input_model.sql": EVENTS,
            "keyed.sql": f"{{{{ config({config}, {begin}, primary_key='id') }}}} {query}",
            "plain.sql": f"{{{{ config({config}, {begin}) }}}} {query}",
        }

    def test_run_with_event_time(self, project: TestProjInfo) -> None:
        with patch_microbatch_end_time("2020-01-03 13:57:00"):
            run_dbt(["run"])
        project.run_sql("delete from {schema}.input_model where id = 3")
        project.run_sql("insert into {schema}.input_model values (7, timestamp '2020-01-03 05:00:00+00:00')")

        with patch_microbatch_end_time("2020-01-03 14:57:00"):
            run_dbt(["run", "--select", "keyed", "plain"])

        for name in ("keyed", "plain"):
            rows = project.run_sql(f"select id from {project.test_schema}.{name} order by id", fetch="all")
            assert rows == [(1,), (2,), (7,)], name
