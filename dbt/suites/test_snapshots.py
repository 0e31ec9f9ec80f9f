"""Suites of snapshots that dbt publishes for its adapters, beyond the basic one."""

from __future__ import annotations

from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.util import relation_from_name


class TestSimpleSnapshot(BaseSimpleSnapshot):
    """The source has a primary key, because one test adds a column: a table without a key refuses that."""

    def create_fact_from_seed(self, where: str | None = None) -> None:
        fact, seed = (relation_from_name(self.project.adapter, name) for name in ("fact", "seed"))
        self.project.run_sql(f"drop table if exists {fact}")
        self.project.run_sql(
            f"create table {fact} (primary key (id) not enforced) as select * from {seed} where {where or 'true'}"
        )


class TestSnapshotCheck(BaseSnapshotCheck):
    pass
