"""Makes a branch of a table, to be written and audited before anybody reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_text, is_nothing
from dynamic_table.operators.table_operator import TableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["CreateBranchOperator"]

BRANCH_KEY = "created_branch"  # of the task's state store


class CreateBranchOperator(TableOperator):
    """Makes a branch that begins with the table's newest snapshot.

    A retry or a clear of this task makes it anew, from what the table is by then: what was written to it is gone. A
    branch of that name which this task did not make is left alone, with an error.

    :param branch: the branch's name; one for each run, unless runs never overlap. (templated)
    :param time_retained: how long to keep it, such as ``7 d``, if nobody deletes it; None: for ever. (templated)
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
        """Make the branch and return its name and the snapshot it begins with."""
        name = checked_text(self.branch, "branch")
        retained = None if is_nothing(self.time_retained) else checked_text(self.time_retained, "time_retained")
        table = self.hook.load_table(self.table)
        store = context.get("task_state_store")
        is_there = name in table.branches.list()
        if is_there and store is not None and store.get(BRANCH_KEY) == name:
            self.log.info("Branch %s of an earlier try is made anew", name)
            table.branches.delete(name)
        elif not is_there and store is not None:
            store.set(BRANCH_KEY, name)
        table.branches.create(name, time_retained=retained)
        begin = table.branches.open(name).new_read().plan().snapshot
        return {"table": self.table, "op": "create_branch", "branch": name, "version": begin.id if begin else None}
