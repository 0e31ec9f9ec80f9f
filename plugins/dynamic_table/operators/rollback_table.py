"""Makes a table show again what it showed before."""

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
    """Goes back to an older snapshot, by a new one: nothing is lost, and going back can be taken back.

    Say exactly one of ``snapshot_id`` and ``tag``.

    :param snapshot_id: the snapshot to go back to. (templated)
    :param tag: the tag to go back to. (templated)
    :param change_tracking: tell streams what changed by that; None: where the table has a log. (templated)
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
        """Go back and return the new snapshot's id, None if the table shows that already."""
        from storage_lib.errors import InvalidInputError

        snapshot_id = None if is_nothing(self.snapshot_id) else checked_count(self.snapshot_id, "snapshot_id", least=1)
        tag = None if is_nothing(self.tag) else checked_text(self.tag, "tag")
        if (snapshot_id is None) == (tag is None):
            message = f"Say one of snapshot_id ({self.snapshot_id!r}) and tag ({self.tag!r}) to go back to."
            raise InvalidInputError(message)
        tracking = None if is_nothing(self.change_tracking) else checked_flag(self.change_tracking, "change_tracking")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            snapshot = table.rollback_to(
                snapshot_id=snapshot_id, tag=tag, change_tracking=tracking, **identity.arguments()
            )
        version = snapshot.id if snapshot else None
        return announce(context, table=self.table, op="rollback", version=version, to=tag or snapshot_id)
