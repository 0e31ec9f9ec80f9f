"""The answer of a materialized table's query by DuckDB, an engine that shares no code with refreshes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import sqlglot
from sqlglot import exp

from storage_lib.materialized.sources.source_positions import recorded_position, source_name

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

Bag = Counter[tuple[object, ...]]


def stored_bag(table: DynamicTable, snapshot_id: int | None = None) -> Bag:
    """Return the rows of the table, or of one of its snapshots, with their counts."""
    return _bag(table.to_arrow(snapshot_id=snapshot_id))


def expected_bag(catalog: Catalog, table: DynamicTable, snapshot_id: int | None = None) -> Bag:
    """Return the query's answer over the sources at the snapshots that a snapshot, by default the newest, records."""
    definition, recorded = table.definition, snapshot_id or table.inspect.latest_snapshot_id()
    assert definition is not None
    assert recorded is not None
    positions = table.inspect.source_positions(recorded)
    with duckdb.connect() as connection:
        relations = {}
        for number, name in enumerate(definition.sources):
            source = catalog.load_table(name)
            position = recorded_position(positions, source_name(source))
            assert position is not None, f"no position of {name}"
            rows = source.arrow_schema.empty_table()
            if position.snapshot_id:
                rows = source.to_arrow(snapshot_id=position.snapshot_id)
            relations[name] = f"source_{number}"
            connection.register(relations[name], rows)
        return _bag(connection.sql(_in_duckdb(definition.query, definition.database, relations)).to_arrow_table())


def _in_duckdb(query: str, database: str, relations: dict[str, str]) -> str:
    tree = sqlglot.parse_one(query, dialect="spark")
    for table in tree.find_all(exp.Table):
        relation = relations.get(f"{table.db or database}.{table.name}")
        if relation is not None:
            table.replace(exp.to_table(relation).as_(table.alias_or_name, table=True))
    return tree.sql("duckdb")


def _bag(rows: pa.Table) -> Bag:
    return Counter(tuple(row.values()) for row in rows.to_pylist())
