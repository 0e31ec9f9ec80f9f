"""Removes files of a table that nothing refers to."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from dynamic_table.hook import DynamicTableHook
from dynamic_table.rendered_argument import checked_flag, checked_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["RemoveOrphanFilesOperator"]

SHOWN_MAX = 20


class RemoveOrphanFilesOperator(BaseOperator):
    """Deletes what killed writers left behind: files that no snapshot, tag or branch needs.

    Give ``older_than_hours`` more time than the longest write takes: files of a commit in the making belong to no
    snapshot yet.

    :param table: ``database.table``. (templated)
    :param older_than_hours: younger files stay. (templated)
    :param list_only: tell which they are and delete none. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table", "older_than_hours", "list_only")
    ui_color = "#f2e6d8"

    def __init__(
        self,
        *,
        table: str,
        older_than_hours: float | str = 24,
        list_only: bool | str = False,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.older_than_hours = older_than_hours
        self.list_only = list_only
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The way to the table."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow's signature
        """Delete them and return how many there were. Repeating it is harmless: it makes no commit."""
        list_only = checked_flag(self.list_only, "list_only")
        hours = checked_number(self.older_than_hours, "older_than_hours")
        found = self.hook.load_table(self.table).remove_orphan_files(
            older_than=timedelta(hours=hours), dry_run=list_only
        )
        for path in found.paths[:SHOWN_MAX]:
            self.log.info("%s %s", "Would delete" if list_only else "Deleted", path)
        if len(found.paths) > SHOWN_MAX:
            self.log.info("... and %d more", len(found.paths) - SHOWN_MAX)
        return {
            "table": self.table,
            "op": "remove_orphan_files",
            "files": len(found.paths),
            "bytes": found.size_bytes,
            "list_only": list_only,
        }
