"""Trigger that waits until a table meets a condition."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from dynamic_table.events.table_conditions import condition_of
from dynamic_table.hook import DynamicTableHook
from dynamic_table.triggers.deferral_trigger import DeferralTrigger
from dynamic_table.triggers.own_threads import looked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Connection

__all__ = ["TableConditionTrigger"]


class TableConditionTrigger(DeferralTrigger):
    """Fires once: when the condition is met, or when a check of the table fails permanently.

    :param table: ``database.table``.
    :param condition: the condition as ``table_conditions.spelled`` returns it.
    :param dynamic_table_conn_id: the connection.
    :param poll_seconds: seconds between checks.
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
        """Return the class path and arguments that recreate this trigger."""
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
        """Poll until the condition is met. Retries during outages; passes other errors to the task, which fails."""
        connection = await BaseHook.aget_connection(self.dynamic_table_conn_id)
        group, subject = f"connection {self.dynamic_table_conn_id}", f"Table {self.table}"
        while True:
            payload = await looked(group, self._look, connection, late=None, log=self.log, subject=subject)
            if payload is not None:
                return payload
            await asyncio.sleep(self.poll_seconds)

    def _look(self, connection: Connection) -> dict[str, Any] | None:
        """Return the event, or None to check again. Runs in a thread, which can't fetch connections."""
        from storage_lib.errors import RetryableError, StorageError

        try:
            table = DynamicTableHook(connection=connection).load_table(self.table)
            look = condition_of(self.condition).look(table)
        except RetryableError as error:
            self.log.warning("Table %s can't be read now: %s", self.table, error)
            return None
        except StorageError as error:
            return {"error": type(error).__name__, "message": str(error)}
        return {"result": dict(look.result), "text": look.text} if look.is_met else None
