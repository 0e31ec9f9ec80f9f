"""Users can't change the rows of a materialized table; its upkeep works as for any table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage_lib import (
    AddColumn,
    AlterType,
    DropColumn,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetOption,
)
from storage_lib.schema.evolution.schema_changes import SchemaChange
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from tests.support.extras import needed

DEFINITION = MaterializedTableDefinition(query="SELECT dt, id, n FROM t", database="db", sources=("db.t",))
ROW = [{"dt": "a", "id": 1, "n": 5}]


@pytest.fixture
def table() -> DynamicTable:
    """Return a table that was filled before it got a definition."""
    table = MemoryCatalog().create_table(
        "db.m",
        {"dt": "STRING NOT NULL", "id": "INT NOT NULL", "n": "INT"},
        primary_key=["dt", "id"],
        partition_by=["dt"],
    )
    table.append(ROW)
    table.append([{"dt": "b", "id": 2, "n": None}])
    return table.alter(*(SetOption(key, value) for key, value in DEFINITION.to_options().items()))


WRITES: dict[str, Callable[[DynamicTable], Any]] = {
    "append": lambda table: table.append(ROW),
    "insert": lambda table: table.insert([{"dt": "c", "id": 1, "n": 1}]),
    "upsert": lambda table: table.upsert(ROW),
    "delete": lambda table: table.delete("id = 1"),
    "merge": lambda table: table.merge(ROW),
    "overwrite": lambda table: table.overwrite(ROW, partition={}),
    "drop": lambda table: table.maintenance.drop_partitions([{"dt": "a"}]),
    "tracked drop": lambda table: table.maintenance.drop_partitions([{"dt": "a"}], change_tracking=True),
    "engine": lambda table: table.new_write().begin(commit_user="job"),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_of_a_materialized_table_is_refused(table: DynamicTable, write: str) -> None:
    if write == "delete":
        needed("sqlglot")  # for the condition
    before = table.inspect.latest_snapshot_id()

    with pytest.raises(InvalidInputError, match="is a materialized table"):
        WRITES[write](table)

    assert table.inspect.latest_snapshot_id() == before
    assert table.inspect.lease_holder() is None


@pytest.mark.parametrize(
    "change",
    [
        AddColumn("more", "INT"),
        DropColumn("n"),
        RenameColumn("n", "m"),
        MoveColumn("n", first=True),
        AlterType("n", "BIGINT"),
    ],
)
def test_columns_of_a_materialized_table_change_only_with_its_query(table: DynamicTable, change: SchemaChange) -> None:
    with pytest.raises(InvalidInputError, match="is a materialized table"):
        table.alter(change)

    altered = table.alter(
        AddColumn("more", "INT"), SetOption("materialized-table.definition-query", "SELECT dt, id, n, 1 AS more FROM t")
    )
    assert altered.arrow_schema.names == ["dt", "id", "n", "more"]
    commented = altered.alter(SetComment("a comment", "n"), SetOption("write-only", "true"))
    assert commented.options.write_only


def test_compaction_expiry_tags_and_rollbacks_of_a_materialized_table_work(table: DynamicTable) -> None:
    table.tags.create("t", 1)
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)
    table.rollback_to(tag="t")

    assert table.to_arrow().to_pylist() == ROW
    assert table.definition == DEFINITION
