"""Removes orphan files of a table."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_flag, checked_number
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.table_operator import TableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["RemoveOrphanFilesOperator"]

SHOWN_MAX = 20


class RemoveOrphanFilesOperator(TableOperator):
    """Deletes files that no snapshot, tag or branch refers to, such as files of crashed writers.

    ``older_than_hours`` has to exceed the longest write: files of a write in progress belong to no snapshot yet.

    :param older_than_hours: keep younger files. (templated)
    :param list_only: list the files without deleting them. (templated)
    """

    template_fields: Sequence[str] = ("table", "older_than_hours", "list_only")
    ui_color = "#f2e6d8"

    def __init__(
        self,
        *,
        older_than_hours: float | str = 24,
        list_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.older_than_hours = older_than_hours
        self.list_only = list_only

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow's signature
        """Delete the orphan files and return their number; idempotent, since it makes no commit."""
        list_only = checked_flag(self.list_only, "list_only")
        hours = checked_number(self.older_than_hours, "older_than_hours")
        with progress_in_log(self.log):
            found = self.hook.load_table(self.table).maintenance.remove_orphan_files(
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
