"""The table that an operator works on: itself, or a branch of it that nobody reads yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_text, is_nothing

if TYPE_CHECKING:
    from dynamic_table.hook import DynamicTableHook

__all__ = ["BRANCH_ASPECT", "aspect_of", "load_branch"]

BRANCH_ASPECT = "branch"


def load_branch(hook: DynamicTableHook, table: str, branch: Any) -> Any:
    """Open ``db.table``, or its branch if one is named; a NotFoundError tells that there is none of this name."""
    opened = hook.load_table(table)
    return opened if is_nothing(branch) else opened.branches.open(checked_text(branch, "branch"))


def aspect_of(branch: Any, otherwise: str | None = None) -> str | None:
    """Return what an event is about: what happens on a branch must not start those who wait for the table."""
    return otherwise if is_nothing(branch) else BRANCH_ASPECT
