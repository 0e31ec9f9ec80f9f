"""The table that most tests of the table layer use, and its rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.catalog.catalog import Catalog
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.table.protocol.stream_position import StreamPosition
from tests.support.fake_environment import fake_environment

COLUMNS = pa.schema([("dt", pa.string()), ("id", pa.int64()), ("price", pa.int64())])
NAME = "shop.orders"


def orders(catalog: Catalog | None = None, **options: str) -> DynamicTable:
    """Create a table of ``COLUMNS``, key (dt, id), partitioned by dt; in memory unless a catalog is given."""
    catalog = catalog or MemoryCatalog(environment=fake_environment())
    spelled = {key.replace("_", "-"): value for key, value in options.items()}
    return catalog.create_table(NAME, COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options=spelled)


def rows(*changes: str) -> pa.Table:
    """Parse changes: ``"+I a 1 10"`` is an insert of (dt=a, id=1, price=10)."""
    parts = [change.split() for change in changes]
    return pa.table(
        {
            "dt": pa.array([dt for _, dt, _, _ in parts], pa.string()),
            "id": pa.array([int(id_) for _, _, id_, _ in parts], pa.int64()),
            "price": pa.array([None if price == "-" else int(price) for *_, price in parts], pa.int64()),
            "_row_kind": pa.array([kind for kind, *_ in parts], pa.string()),
        }
    )


def content(table: DynamicTable) -> set[str]:
    """Return the rows of the newest snapshot, each as ``"a 1 10"``."""
    return {_text(row) for row in table.to_arrow().to_pylist()}


def streamed(table: DynamicTable, position: StreamPosition | None = None) -> list[str]:
    """Return all changes that a stream reads from ``position`` (default: the log's beginning), as ``"+I a 1 10"``."""
    source = table.stream(position=position or StreamPosition(snapshot_id=0, offsets=LogOffsets()))
    changes: list[str] = []
    while (batch := source.poll()) is not None:
        changes += [f"{row['_row_kind']} {_text(row)}" for row in batch.to_pylist()]
    return changes


def applied(changes: list[str]) -> set[str]:
    """Return the rows that remain when ``changes`` are applied in order."""
    remaining: dict[tuple[str, str], str] = {}
    for change in changes:
        kind, dt, id_, price = change.split()
        if kind in ("+I", "+U"):
            remaining[dt, id_] = f"{dt} {id_} {price}"
        else:
            remaining.pop((dt, id_), None)
    return set(remaining.values())


def reopened(table: DynamicTable, log: LogStore | None = None) -> DynamicTable:
    """Load the same table as another process would, with ``log`` in place of its own."""
    return DynamicTable(
        name=table.name,
        uuid=table.uuid,
        location=table.location,
        address=None,
        environment=table.environment,
        schema=table.schema,
        options=table.options,
        log=table.log if log is None else log,
    )


def under_newest_schema(table: DynamicTable) -> DynamicTable:
    """Load the same table as a process does that opens it after it was altered."""
    schema = table.context.file_store.of_newest_schema().schema
    return DynamicTable(
        name=table.name,
        uuid=table.uuid,
        location=table.location,
        address=None,
        environment=table.environment,
        schema=schema,
        options=TableOptions.parse(schema.options),
        log=table.log,
    )


def _text(row: Mapping[str, object]) -> str:
    price = "-" if row["price"] is None else row["price"]
    return f"{row['dt']} {row['id']} {price}"
