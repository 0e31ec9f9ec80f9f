"""Rolls a table back to an earlier snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_count, checked_flag, checked_text, is_nothing
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["RollbackTableOperator"]


class RollbackTableOperator(TableOperator):
    """Restores an older snapshot's content in a new snapshot; no snapshot is lost, so a rollback can be undone.

    Give exactly one of ``snapshot_id`` and ``tag``.

    :param snapshot_id: the snapshot to restore. (templated)
    :param tag: the tag to restore. (templated)
    :param change_tracking: write the difference into the log; None: if the table has a log. (templated)
    """

    template_fields: Sequence[str] = ("table", "snapshot_id", "tag", "change_tracking")
    announces = True
    ui_color = "#f4dcdc"

    def __init__(
        self,
        *,
        snapshot_id: int | str | None = None,
        tag: str | None = None,
        change_tracking: bool | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id
        self.tag = tag
        self.change_tracking = change_tracking

    def execute(self, context: Context) -> dict[str, Any]:
        """Roll back and return the new snapshot's id, or None if the table already has that content."""
        from storage_lib.errors import InvalidInputError

        snapshot_id = None if is_nothing(self.snapshot_id) else checked_count(self.snapshot_id, "snapshot_id", least=1)
        tag = None if is_nothing(self.tag) else checked_text(self.tag, "tag")
        if (snapshot_id is None) == (tag is None):
            message = f"Give either snapshot_id ({self.snapshot_id!r}) or tag ({self.tag!r}) to roll back to."
            raise InvalidInputError(message)
        tracking = None if is_nothing(self.change_tracking) else checked_flag(self.change_tracking, "change_tracking")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            snapshot = table.rollback_to(
                snapshot_id=snapshot_id, tag=tag, change_tracking=tracking, **identity.arguments()
            )
        version = snapshot.id if snapshot else None
        return announce(context, table=self.table, op="rollback", version=version, to=tag or snapshot_id)
