"""A watched table reports each commit once, in order, also after a restart of the triggerer."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset, BaseHook

from dynamic_table.triggers.snapshot_trigger import SnapshotTrigger
from dynamic_table.versions.airflow_feature import AirflowFeature
from storage_lib import open_catalog
from tests.support.airflow_names import needs

if TYPE_CHECKING:
    from airflow.sdk.execution_time.context import AssetStateStoreAccessors

    from storage_lib import DynamicTable

COLUMNS = pa.schema([pa.field("dt", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


pytestmark = needs(AirflowFeature.TASK_STATE)  # tests/plugins/versions has the watcher of older versions
NAMES = ("shop.orders", "orders_for_bi")


class Store:
    """State stores of assets in Airflow's database, and the accessors that Airflow injects for some of them."""

    def __init__(self, *names: str) -> None:
        self.names = names or NAMES[:1]
        self.values: dict[str, dict[str, Any]] = {name: {} for name in NAMES}
        self.is_written = asyncio.Event()

    def accessors(self) -> AssetStateStoreAccessors:
        """Return real accessors whose messages reach the dictionaries."""
        from airflow.sdk.execution_time.context import AssetStateStoreAccessors

        found = AssetStateStoreAccessors([Asset(name) for name in self.names])
        for accessor in found._by_name.values():
            for verb in ("aget", "aset", "adelete"):
                setattr(accessor, verb, partial(getattr(self, verb), accessor._name))
        return found

    @property
    def watermarks(self) -> list[int]:
        """The positions stored with the assets that are watched now."""
        return [value for name in self.names for value in self.values[name].values()]

    async def aget(self, name: str, key: str, default: Any = None) -> Any:
        return self.values[name].get(key, default)

    async def aset(self, name: str, key: str, value: Any) -> None:
        self.values[name][key] = value
        self.is_written.set()

    async def adelete(self, name: str, key: str) -> None:
        self.values[name].pop(key, None)


@pytest.fixture
def orders(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> DynamicTable:
    async def aget_connection(conn_id: str) -> Any:
        return BaseHook.get_connection(conn_id)

    monkeypatch.setattr(BaseHook, "aget_connection", aget_connection)
    return open_catalog(str(warehouse)).create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"log.system": "none", "write-only": "true"},
    )


def fill(table: DynamicTable, *days: str) -> None:
    table.append(pa.table({"dt": list(days), "id": pa.array(range(len(days)), pa.int64())}))


def watched(store: Store, count: int, *, table: str = "shop.orders", before: Any = None) -> list[dict[str, Any]]:
    """Return the next events of a new triggerer; ``before`` is called after its first check."""

    async def watch() -> list[dict[str, Any]]:
        store.is_written = asyncio.Event()
        path, arguments = SnapshotTrigger(table=table, poll_seconds=0.01).serialize()
        assert path == "dynamic_table.triggers.snapshot_trigger.SnapshotTrigger"
        trigger = SnapshotTrigger(**json.loads(json.dumps(arguments)))
        trigger.asset_state_store = store.accessors()
        events = trigger.run()
        next_event = asyncio.ensure_future(anext(events))
        if not store.watermarks:
            await store.is_written.wait()
        if before is not None:
            await asyncio.to_thread(before)
        payloads = [(await next_event).payload]
        while len(payloads) < count:
            payloads.append((await anext(events)).payload)
        # The watermark is stored when the next event is requested.
        coming = asyncio.ensure_future(anext(events))
        while min(store.watermarks) < payloads[-1]["version"]:
            store.is_written.clear()
            await store.is_written.wait()
        coming.cancel()
        return payloads

    return asyncio.run(asyncio.wait_for(watch(), 30))


def test_commits_are_told_one_by_one_and_none_from_before_the_watch(orders: DynamicTable) -> None:
    fill(orders, "a")
    store = Store()

    def commit() -> None:
        fill(orders, "b", "a")
        orders.compact()
        orders.maintenance.drop_partitions([{"dt": "a"}])

    events = watched(store, 2, before=commit)

    assert events == [
        {"table": "shop.orders", "version": 2, "kind": "APPEND", "rows": 2, "partitions": [{"dt": "a"}, {"dt": "b"}]},
        {"table": "shop.orders", "version": 4, "kind": "OVERWRITE", "rows": -2, "partitions": [{"dt": "a"}]},
    ]


def test_a_restarted_triggerer_tells_what_came_meanwhile(orders: DynamicTable) -> None:
    store = Store()
    fill(orders, "a")
    assert [event["version"] for event in watched(store, 1, before=lambda: fill(orders, "a"))] == [2]

    for day in "bcd":
        fill(orders, day)
    orders.maintenance.expire_snapshots(retain_last=2)

    assert [event["partitions"] for event in watched(store, 2)] == [[{"dt": "c"}], [{"dt": "d"}]]


def test_a_table_that_is_not_there_yet_is_waited_for(orders: DynamicTable) -> None:
    catalog = open_catalog(orders.location.rsplit("/shop", 1)[0])
    store = Store()
    store.values[NAMES[0]]["snapshot_id"] = 0  # as an earlier version stored it
    created = {"primary_key": ["dt", "id"], "partition_by": ["dt"], "options": {"log.system": "none"}}

    def create() -> None:
        fill(catalog.create_table("shop.late", COLUMNS, **created), "a")  # type: ignore[arg-type]

    assert [event["version"] for event in watched(store, 1, table="shop.late", before=create)] == [1]


def test_assets_with_the_same_watcher_share_its_events_and_none_is_left_behind(orders: DynamicTable) -> None:
    store = Store(*NAMES)
    fill(orders, "a")
    assert [event["version"] for event in watched(store, 1, before=lambda: fill(orders, "a"))] == [2]
    assert store.watermarks == [2, 2]

    store.names = NAMES[:1]
    fill(orders, "b")
    assert [event["version"] for event in watched(store, 1)] == [3]
    store.names = NAMES
    fill(orders, "c")

    assert [event["version"] for event in watched(store, 2)] == [3, 4], "the second asset has not been told 3"


def test_an_asset_that_is_watched_later_is_told_what_comes_next(orders: DynamicTable) -> None:
    store = Store()
    fill(orders, "a")
    watched(store, 1, before=lambda: fill(orders, "a"))
    store.names = NAMES
    fill(orders, "b")

    assert [event["version"] for event in watched(store, 1)] == [3]
    assert store.watermarks == [3, 3]


def test_two_watchers_of_one_asset_keep_their_positions_apart() -> None:
    keys = {
        SnapshotTrigger(**arguments)._key
        for arguments in (
            {"table": "shop.orders"},
            {"table": "shop.items"},
            {"table": "shop.orders", "kinds": ["COMPACT"]},
            {"table": "shop.orders", "dynamic_table_conn_id": "other"},
        )
    }

    assert len(keys) == 4
    assert SnapshotTrigger(table="shop.orders", poll_seconds=9)._key in keys
