"""Drops a table: its files, its log, and its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_flag, checked_text
from dynamic_table.events.lineage import table_lineage
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.first_try import seen_by_first_try

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["DropTableOperator"]

EXISTED_KEY = "table_existed"  # key in the task's state store


class DropTableOperator(TableOperator):
    """Removes a table with all its data, files and log; this cannot be undone.

    If the task crashes, a retry resumes where the first try ended.

    :param if_exists: succeed if the table does not exist. (templated)
    """

    template_fields: Sequence[str] = ("table", "if_exists")
    ui_color = "#f0c9c9"

    def __init__(
        self,
        *,
        if_exists: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.if_exists = if_exists

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the table and return whether it existed."""
        name = checked_text(self.table, "table")
        if_exists = checked_flag(self.if_exists, "if_exists")
        catalog = self.hook.get_conn()
        existed = seen_by_first_try(context, EXISTED_KEY, lambda: catalog.table_exists(name))
        # A retry finds the table dropped by the first try, which is no error.
        catalog.drop_table(name, if_exists=if_exists or existed)
        return {"table": name, "op": "drop_table", "existed": existed}

    def get_openlineage_facets_on_start(self) -> Any:
        """Return the table for OpenLineage."""
        return table_lineage(self.hook, writes=[self.table])

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Report the drop; also called after a failure, when the table may still exist."""
        done = task_instance.xcom_pull(task_ids=self.task_id, map_indexes=task_instance.map_index)
        return table_lineage(self.hook, drops=[self.table]) if done else self.get_openlineage_facets_on_start()
