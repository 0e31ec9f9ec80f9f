"""Columns that a table declares with METADATA, which every reader of a topic fills without an option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, TableDescriptor
from storage_lib.schema.evolution.schema_changes import DropColumn, RenameColumn, SetOption
from storage_lib.sql.definition.table_declaration import declared_table
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic

ORDERED = {"log.system": "none", "sequence.field": "ordinal", "compaction.keep-deletes": "true"}


def catalog() -> MemoryCatalog:
    return MemoryCatalog(environment=fake_environment())


def table_of(columns: Mapping[str, str], options: Mapping[str, str] | None = None) -> DynamicTable:
    of_table = {"log.system": "none", **(options or {})}
    return catalog().create_table("shop.items", columns, primary_key=["id"], options=of_table)


def tell(topic: RawTopic, key: int, item: str, **source: object) -> None:
    row = {"id": key, "item": item}
    record = {"before": None, "after": row, "op": "c", "source": source}
    topic.tell(json.dumps({"id": key}).encode(), json.dumps(record).encode())


def rows_of(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def of_columns() -> DynamicTable:
    columns = {"id": "BIGINT NOT NULL", "item": "STRING", "ordinal": "BIGINT METADATA FROM 'value.source.lsn'"}
    return table_of(columns, ORDERED)


def of_descriptor() -> DynamicTable:
    descriptor = (
        TableDescriptor.for_managed()
        .column("id", "BIGINT", nullable=False)
        .column("item", "STRING")
        .column("ordinal", "BIGINT", metadata="value.source.lsn")
        .with_primary_key(["id"])
    )
    for key, value in ORDERED.items():
        descriptor = descriptor.option(key, value)
    return catalog().create_table("shop.items", descriptor)


def of_sql() -> DynamicTable:
    _, descriptor = declared_table(
        "CREATE TABLE items (id BIGINT, item STRING, ordinal BIGINT METADATA FROM 'value.source.lsn', PRIMARY KEY (id)"
        " NOT ENFORCED) WITH ('sequence.field' = 'ordinal', 'log.system' = 'none', 'compaction.keep-deletes' = 'true')"
    )
    return catalog().create_table("shop.items", descriptor)


@pytest.mark.parametrize("make", [of_columns, of_descriptor, of_sql])
def test_the_newest_row_in_the_order_of_the_source_wins_without_an_option_of_the_reader(make: Any) -> None:
    table, topic = make(), RawTopic()
    tell(topic, 1, "teapot", lsn=8)
    tell(topic, 1, "tea", lsn=5)

    topic.ingest(table)

    assert rows_of(table) == [(1, "teapot", 8)]


def test_a_renamed_column_is_still_filled_and_a_dropped_one_is_forgotten() -> None:
    table = table_of(
        {
            "id": "BIGINT NOT NULL",
            "item": "STRING",
            "place": "BIGINT METADATA FROM 'offset'",
            "op": "STRING METADATA FROM 'value.op'",
        }
    )
    table = table.alter(RenameColumn("place", "position"), DropColumn("op"))
    topic = RawTopic()
    tell(topic, 1, "tea")

    topic.ingest(table)

    assert rows_of(table) == [(1, "tea", 0)]


def test_an_option_of_the_reader_may_fill_further_columns_but_not_contradict_the_table() -> None:
    table = table_of(
        {"id": "BIGINT NOT NULL", "item": "STRING", "place": "BIGINT METADATA FROM 'offset'", "op": "STRING"}
    )
    topic = RawTopic()
    tell(topic, 1, "tea")

    topic.ingest(table, metadata="op = value.op, place = offset")
    with pytest.raises(InvalidInputError, match="fills column 'place' with partition, but the table declares it as"):
        topic.ingest(table, metadata="place = partition")

    assert rows_of(table) == [(1, "tea", 0, "c")]


@pytest.mark.parametrize(("of", "ordinals"), [("BIGINT", (9, 10)), ("DECIMAL(38, 0)", (9, 10**30))])
def test_the_scn_of_oracle_is_a_number_though_it_is_written_as_text(of: str, ordinals: tuple[int, int]) -> None:
    older, newer = ordinals
    columns = {"id": "BIGINT NOT NULL", "item": "STRING", "ordinal": f"{of} METADATA FROM 'value.source.scn'"}
    table, topic = table_of(columns, ORDERED), RawTopic()
    tell(topic, 1, "teapot", scn=str(newer), connector="oracle")
    tell(topic, 1, "tea", scn=str(older), connector="oracle")

    topic.ingest(table)

    assert rows_of(table) == [(1, "teapot", newer)]


def test_the_lsn_of_sql_server_is_ordered_as_text() -> None:
    columns = {"id": "BIGINT NOT NULL", "item": "STRING", "ordinal": "STRING METADATA FROM 'value.source.commit_lsn'"}
    table, topic = table_of(columns, ORDERED), RawTopic()
    tell(topic, 1, "teapot", commit_lsn="00000027:00000ac0:0004", connector="sqlserver")
    tell(topic, 1, "tea", commit_lsn="00000027:00000abf:0009", connector="sqlserver")

    topic.ingest(table)

    assert rows_of(table) == [(1, "teapot", "00000027:00000ac0:0004")]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("BIGINT METADATA", "no metadata 'ordinal'"),
        ("BIGINT METADATA FROM 'value.source.lns'", "did you mean 'value.source.lsn'"),
        ("BIGINT METADATA FROM offset", "write a type and METADATA FROM '<metadata>'"),
        ("BIGINT METADATA FROM 'offset' VIRTUAL", "nothing behind it"),
        ("DATE METADATA FROM 'value.source.lsn'", "DATE, which can't hold value.source.lsn; make it BIGINT"),
        ("STRING METADATA FROM 'value.source.scn'", "as text, 9 would be newer than 10"),
    ],
)
def test_a_declaration_that_no_reader_could_follow_is_refused(column: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        table_of({"id": "BIGINT NOT NULL", "ordinal": column}, ORDERED)


def test_a_field_of_a_row_may_be_called_metadata() -> None:
    table = table_of({"id": "BIGINT NOT NULL", "of": "ROW<a INT, metadata STRING>"})

    assert str(table.schema.fields[1].type) == "ROW<a INT, metadata STRING>"


def test_a_change_that_no_reader_could_follow_is_refused() -> None:
    table = table_of({"id": "BIGINT NOT NULL", "item": "STRING"})

    with pytest.raises(InvalidInputError, match=r"no metadata 'value\.ops'; did you mean 'value\.op'"):
        table.alter(SetOption("column.item.metadata", "value.ops"))
    with pytest.raises(InvalidInputError, match="fills column 'other', which the table does not have"):
        table.alter(SetOption("column.other.metadata", "value.op"))
