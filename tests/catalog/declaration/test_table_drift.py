"""Drift of a table from its declaration is reported one line per difference; another spelling is not a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, SetOption, TableDescriptor
from storage_lib.catalog.declaration.table_drift import table_drift
from storage_lib.schema.table_schema import typed_columns

DECLARED = (
    TableDescriptor.for_managed()
    .column("day", "DATE")
    .column("id", "BIGINT")
    .column("price", "DECIMAL(10, 2)")
    .with_primary_key(["day", "id"])
    .partitioned_by(["day"])
    .option("bucket", "2")
)


@pytest.fixture
def table() -> DynamicTable:
    """Create the table as declared, with a default of its catalog."""
    catalog = MemoryCatalog({"log.system": "none", "num-sorted-run.compaction-trigger": "7"})
    return catalog.create_table("shop.orders", DECLARED)


def test_a_table_that_is_as_declared_has_no_drift(table: DynamicTable) -> None:
    assert table_drift(table, DECLARED) == ()


def test_every_difference_is_one_line(table: DynamicTable) -> None:
    other = (
        TableDescriptor.for_managed()
        .column("day", "DATE")
        .column("id", "BIGINT")
        .column("price", "DOUBLE")
        .column("note", "STRING", nullable=False)
        .with_primary_key(["id", "day"])
        .option("bucket", "4")
    )

    assert table_drift(table, replace(other, comment="orders")) == (
        "column price: DECIMAL(10, 2) in the table, declared as DOUBLE",
        "column note: not in the table, declared as STRING NOT NULL",
        "primary key: day, id in the table, declared as id, day",
        "partition columns: day in the table, declared as none",
        "option bucket: 2 in the table, declared as 4",
        "comment: None in the table, declared as 'orders'",
    )


def test_a_column_that_is_not_declared_and_another_order_are_drift(table: DynamicTable) -> None:
    day, id_, price = typed_columns(DECLARED.schema)

    assert table_drift(table, replace(DECLARED, schema=(day, id_))) == (
        "column price: DECIMAL(10, 2) in the table, not declared",
    )
    assert table_drift(table, replace(DECLARED, schema=(id_, day, price))) == (
        "order of columns: day, id, price in the table, declared as id, day, price",
    )


def test_an_option_spelled_otherwise_or_said_although_it_is_the_default_is_no_drift(table: DynamicTable) -> None:
    table = table.alter(SetOption("snapshot.time-retained", "1 h"))
    declared = DECLARED.option("snapshot.time-retained", "60 min").option("merge-engine", "deduplicate")

    assert table_drift(table, declared) == ()


def test_an_option_that_was_set_by_hand_is_drift_and_the_catalogs_default_is_none(table: DynamicTable) -> None:
    table = table.alter(SetOption("snapshot.time-retained", "2 h"))

    assert table_drift(table, DECLARED) == (
        "option snapshot.time-retained: 2 h in the table, not declared; not set when it was created",
    )


def test_a_secret_is_not_told(table: DynamicTable) -> None:
    [line] = table_drift(table, DECLARED.option("log.kafka.sasl.plain.password", "hunter2"))

    assert "hunter2" not in line


def test_a_declaration_that_no_table_could_have_is_refused(table: DynamicTable) -> None:
    with pytest.raises(InvalidInputError):
        table_drift(table, DECLARED.with_primary_key(["no_such_column"]))
