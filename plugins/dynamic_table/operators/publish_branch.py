"""Publishes a branch: fast-forwards its table to the branch's content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_flag, checked_text, is_nothing
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["PublishBranchOperator"]


class PublishBranchOperator(TableOperator):
    """Fast-forwards a table to a branch, in one snapshot, and deletes the branch.

    Fails if rows of the table changed since the branch was created (compaction changes no rows). In that case, clear
    the run from the task that creates the branch.

    :param branch: the branch's name. (templated)
    :param change_tracking: also write the difference into the log; None: if the table has a log. (templated)
    :param keep_branch: keep the branch instead of deleting it. (templated)
    """

    template_fields: Sequence[str] = ("table", "branch", "change_tracking", "keep_branch")
    announces = True
    ui_color = "#e4ecd8"

    def __init__(
        self,
        *,
        branch: str,
        change_tracking: bool | str | None = None,
        keep_branch: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch = branch
        self.change_tracking = change_tracking
        self.keep_branch = keep_branch

    def execute(self, context: Context) -> dict[str, Any]:
        """Publish the branch and return the new snapshot's id, or None if the table already had its content."""
        from storage_lib.errors import NotFoundError

        name = checked_text(self.branch, "branch")
        keep = checked_flag(self.keep_branch, "keep_branch")
        tracking = None if is_nothing(self.change_tracking) else checked_flag(self.change_tracking, "change_tracking")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            snapshot = table.branches.fast_forward(name, change_tracking=tracking, **identity.arguments())
            if not keep:
                try:
                    table.branches.delete(name)
                except NotFoundError:
                    self.log.info("Branch %s does not exist any more: an earlier try deleted it", name)
        version = snapshot.id if snapshot else None
        return announce(context, table=self.table, op="publish", version=version, branch=name)
