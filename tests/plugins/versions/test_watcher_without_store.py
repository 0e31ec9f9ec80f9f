"""A watcher of a table in versions of Airflow without a store of assets: its position is in a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from airflow.sdk import BaseHook

from dynamic_table.triggers.snapshot_trigger import SnapshotTrigger
from dynamic_table.versions.state_files import FileStateStore
from storage_lib import open_catalog

if TYPE_CHECKING:
    from storage_lib import DynamicTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
ROWS = pa.table({"id": [1]})


@pytest.fixture
def orders(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTable:
    async def aget_connection(conn_id: str) -> Any:
        return BaseHook.get_connection(conn_id)

    monkeypatch.setattr(BaseHook, "aget_connection", aget_connection)
    monkeypatch.setattr(
        "dynamic_table.triggers.snapshot_trigger.state_stores_of_trigger",
        lambda _trigger, identity: [FileStateStore(tmp_path / "state" / identity)],
    )
    return open_catalog(str(warehouse)).create_table(
        "shop.orders", COLUMNS, options={"log.system": "none", "write-only": "true"}
    )


def test_a_triggerer_that_starts_again_reports_what_was_committed_meanwhile(
    orders: DynamicTable, tmp_path: Path
) -> None:
    async def first_look() -> None:
        coming = asyncio.ensure_future(anext(SnapshotTrigger(table="shop.orders", poll_seconds=0.01).run()))
        while not list((tmp_path / "state").rglob("*.json")):  # noqa: ASYNC110  a file of another thread
            await asyncio.sleep(0.01)
        coming.cancel()

    async def next_event() -> Any:
        return (await anext(SnapshotTrigger(table="shop.orders", poll_seconds=0.01).run())).payload

    orders.append(ROWS)
    asyncio.run(asyncio.wait_for(first_look(), 60))
    orders.append(ROWS)

    event = asyncio.run(asyncio.wait_for(next_event(), 60))

    assert (event["version"], event["kind"], event["rows"]) == (2, "APPEND", 1)
