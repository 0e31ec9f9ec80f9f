"""Creates a branch of a table, for writes that are audited before they are published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_text, is_nothing
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.versions.kept_state import task_state_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["CreateBranchOperator"]

BRANCH_KEY = "created_branch"  # key in the task's state store


class CreateBranchOperator(TableOperator):
    """Creates a branch from the table's newest snapshot.

    A retry or clear of this task recreates the branch from the newest snapshot at that time and discards the writes to
    it. If the branch exists and this task did not create it, the task fails.

    :param branch: the branch's name; use a different one for each run, unless runs never overlap. (templated)
    :param time_retained: time after which the branch expires, such as ``7 d``; None: never. (templated)
    """

    template_fields: Sequence[str] = ("table", "branch", "time_retained")
    ui_color = "#e8e0f4"

    def __init__(
        self,
        *,
        branch: str,
        time_retained: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch = branch
        self.time_retained = time_retained

    def execute(self, context: Context) -> dict[str, Any]:
        """Create the branch and return its name and first snapshot."""
        name = checked_text(self.branch, "branch")
        retained = None if is_nothing(self.time_retained) else checked_text(self.time_retained, "time_retained")
        table = self.hook.load_table(self.table)
        store = task_state_store(context)
        is_there = name in table.branches.list()
        if is_there and store is not None and store.get(BRANCH_KEY) == name:
            self.log.info("Recreating branch %s of an earlier try", name)
            table.branches.delete(name)
        elif not is_there and store is not None:
            store.set(BRANCH_KEY, name)
        table.branches.create(name, time_retained=retained)
        begin = table.branches.open(name).new_read().plan().snapshot
        return {"table": self.table, "op": "create_branch", "branch": name, "version": begin.id if begin else None}
