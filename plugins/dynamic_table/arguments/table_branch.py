"""The table that an operator works on: the table itself or one of its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_text, is_nothing

if TYPE_CHECKING:
    from dynamic_table.hook import DynamicTableHook

__all__ = ["BRANCH_ASPECT", "aspect_of", "load_branch"]

BRANCH_ASPECT = "branch"


def load_branch(hook: DynamicTableHook, table: str, branch: Any) -> Any:
    """Open ``db.table``, or its branch if one is given; raises NotFoundError if it does not exist."""
    opened = hook.load_table(table)
    return opened if is_nothing(branch) else opened.branches.open(checked_text(branch, "branch"))


def aspect_of(branch: Any, otherwise: str | None = None) -> str | None:
    """Return the name for asset events: an event on a branch must not trigger DAGs that wait for the table."""
    return otherwise if is_nothing(branch) else BRANCH_ASPECT
