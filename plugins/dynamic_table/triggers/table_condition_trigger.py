"""Waits in the triggerer until a table is as somebody wants it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from dynamic_table.events.table_conditions import condition_of
from dynamic_table.hook import DynamicTableHook
from dynamic_table.triggers.deferral_trigger import DeferralTrigger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Connection

__all__ = ["TableConditionTrigger"]


class TableConditionTrigger(DeferralTrigger):
    """Fires once: when the condition is met, or when a look at the table fails for good.

    :param table: ``database.table``.
    :param condition: what ``table_conditions.spelled`` made of it.
    :param dynamic_table_conn_id: the connection.
    :param poll_seconds: how often to look.
    """

    def __init__(
        self, *, table: str, condition: Mapping[str, Any], dynamic_table_conn_id: str, poll_seconds: float
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.table = table
        self.condition = dict(condition)
        self.dynamic_table_conn_id = dynamic_table_conn_id
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds this trigger again."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "table": self.table,
                "condition": self.condition,
                "dynamic_table_conn_id": self.dynamic_table_conn_id,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def wait(self) -> dict[str, Any]:
        """Look until it is met. An outage is waited for; anything else is told to the task, which fails by it."""
        connection = await BaseHook.aget_connection(self.dynamic_table_conn_id)
        payload = await asyncio.to_thread(self._look, connection)
        while payload is None:
            await asyncio.sleep(self.poll_seconds)
            payload = await asyncio.to_thread(self._look, connection)
        return payload

    def _look(self, connection: Connection) -> dict[str, Any] | None:
        """What to tell the task; None: look again. Runs in a thread, where no connection can be asked for."""
        from storage_lib.errors import RetryableError, StorageError

        try:
            table = DynamicTableHook(connection=connection).load_table(self.table)
            look = condition_of(self.condition).look(table)
        except RetryableError as error:
            self.log.warning("Table %s can't be looked at now: %s", self.table, error)
            return None
        except StorageError as error:
            return {"error": type(error).__name__, "message": str(error)}
        return {"result": dict(look.result), "text": look.text} if look.is_met else None
