"""Suspends or resumes a materialized table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_choice
from dynamic_table.operators.table_operator import TableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["CHANGES_OF_STATUS", "SetRefreshStatusOperator"]

CHANGES_OF_STATUS = ("suspend", "resume")


class SetRefreshStatusOperator(TableOperator):
    """Suspends a materialized table, so that schedulers do not refresh it, or resumes it.

    :param change: ``suspend`` or ``resume``. (templated)
    """

    template_fields: Sequence[str] = ("table", "change")
    ui_color = "#d9ecd9"

    def __init__(self, *, change: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.change = change

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow's signature
        """Change the table's status and return it; fails for a table that is not materialized."""
        from storage_lib.spark import resume, suspend

        checked_choice(self.change, "change", CHANGES_OF_STATUS)
        table = self.hook.load_table(self.table)
        altered = suspend(table) if self.change == "suspend" else resume(table)
        status = str(altered.definition.status) if altered.definition else None
        self.log.info("%s is %s", self.table, status)
        return {"table": self.table, "op": self.change, "status": status}
