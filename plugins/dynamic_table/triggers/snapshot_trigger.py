"""Asset watcher that emits an event for every commit to a table, by any engine.

    orders = Asset("shop.orders", watchers=[AssetWatcher(name="commits", trigger=SnapshotTrigger(table="shop.orders"))])
    with DAG("after_orders", schedule=[orders]): ...

The operators emit events of their own commits only; the watcher also covers streams and other engines.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from dynamic_table.arguments.partition_argument import partition_text
from dynamic_table.hook import DynamicTableHook
from dynamic_table.triggers.own_threads import looked
from dynamic_table.versions.kept_state import state_stores_of_trigger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from airflow.sdk import Connection

__all__ = ["CHANGES", "SnapshotTrigger"]

CHANGES = ("APPEND", "OVERWRITE")
"""The kinds of commits that change a table's content; COMPACT and ANALYZE do not."""

WATERMARK = "snapshot_id"  # start of the key in an asset's state store; the key of an earlier version
EVENTS_AT_ONCE = 100


class SnapshotTrigger(BaseEventTrigger):
    """Fires once for each snapshot committed after the first start, in order.

    An event's payload is ``{"table", "version", "kind", "rows", "partitions"}``. The last snapshot reported is stored
    with the asset, so that a restarted triggerer resumes after it; snapshots that expired meanwhile are skipped.

    Assets with equal watchers share one trigger, whose events go to all of them, and an asset may have several
    watchers. So each trigger stores its position under its own key with each of its assets. After a restart it resumes
    at the smallest of them: an asset may get an event twice rather than never. Before Airflow 3.3 the position is in a
    file of the trigger (``versions.kept_state``).

    :param table: ``database.table``.
    :param kinds: the kinds of commits to report.
    :param dynamic_table_conn_id: the connection.
    :param poll_seconds: seconds between checks.
    """

    def __init__(
        self,
        *,
        table: str,
        kinds: Sequence[str] = CHANGES,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        poll_seconds: float = 2,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.table = table
        self.kinds = list(kinds)
        self.dynamic_table_conn_id = dynamic_table_conn_id
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that recreate this trigger."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table": self.table,
                "kinds": self.kinds,
                "dynamic_table_conn_id": self.dynamic_table_conn_id,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until the trigger is cancelled, and yield the events of new snapshots."""
        connection = await BaseHook.aget_connection(self.dynamic_table_conn_id)
        reported = await self._kept()
        group, subject = f"connection {self.dynamic_table_conn_id}", f"Table {self.table}"
        while True:
            nothing: tuple[int | None, list[dict[str, Any]]] = (reported, [])
            seen, payloads = await looked(
                group, self._look, connection, reported, late=nothing, log=self.log, subject=subject
            )
            for payload in payloads:
                yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's
            if seen != reported:
                reported = seen
                for store in self._stores():
                    await store.aset(self._key, reported)
            await asyncio.sleep(self.poll_seconds)

    @property
    def _key(self) -> str:
        watched = json.dumps([self.dynamic_table_conn_id, self.table, sorted(self.kinds)])
        return f"{WATERMARK}-{hashlib.sha256(watched.encode()).hexdigest()[:16]}"

    def _stores(self) -> list[Any]:
        """Return the state store of each asset that has this watcher."""
        return state_stores_of_trigger(self, self._key)

    async def _kept(self) -> int | None:
        """Return the last snapshot that was reported to every asset; None if nothing was reported to any of them."""
        kept: list[int] = []
        for store in self._stores():
            stored = await store.aget(self._key)
            if stored is None and (stored := await store.aget(WATERMARK)) is not None:
                await store.aset(self._key, stored)
                await store.adelete(WATERMARK)
            if stored is not None:
                kept.append(int(str(stored)))
        return min(kept, default=None)

    def _look(self, connection: Connection, reported: int | None) -> tuple[int | None, list[dict[str, Any]]]:
        """Return the last snapshot examined and the events. Errors are logged: the next check may succeed."""
        from storage_lib.errors import StorageError

        try:
            table = DynamicTableHook(connection=connection).load_table(self.table)
            snapshot = table.new_read().plan().snapshot
            newest = 0 if snapshot is None else snapshot.id
            if reported is None or newest < reported:
                return newest, []  # the first check, or a recreated table
            commits = table.inspect.commits(after=reported, limit=EVENTS_AT_ONCE)
        except StorageError as error:
            self.log.warning("Table %s can't be read now: %s", self.table, error)
            return reported, []
        payloads = [
            {
                "table": self.table,
                "version": commit.snapshot_id,
                "kind": commit.kind,
                "rows": commit.delta_row_count,
                "partitions": [
                    {column: None if value is None else partition_text(value) for column, value in each.items()}
                    for each in commit.partitions
                ],
            }
            for commit in commits
            if commit.kind in self.kinds
        ]
        return (commits[-1].snapshot_id if commits else reported), payloads
