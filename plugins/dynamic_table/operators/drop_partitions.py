"""Drops partitions of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.partition_argument import partition_label
from dynamic_table.arguments.rendered_argument import checked_flag, is_nothing
from dynamic_table.operators.partition_drop import PartitionDropOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

__all__ = ["DropPartitionsOperator"]


class DropPartitionsOperator(PartitionDropOperator):
    """Removes whole partitions, those given or those before a value, in one commit.

    Runs in parallel with streaming writers. By default the log receives no deletions: dropping a partition for its age
    is expiry, not a change of its rows.

    :param approved: the list from ``ApproveDropOperator``: exactly these partitions are dropped, and ``partitions``
        and ``before`` are ignored. None: no approval was needed. (templated)
    :param change_tracking: also write the deletions into the log. (templated)
    """

    template_fields: Sequence[str] = (*PartitionDropOperator.template_fields, "approved", "change_tracking")
    announces = True

    def __init__(
        self,
        *,
        approved: Sequence[Mapping[str, str | None]] | str | None = None,
        change_tracking: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.approved: Any = approved
        self.change_tracking = change_tracking

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the partitions and return the snapshot's id and the partitions."""
        change_tracking = checked_flag(self.change_tracking, "change_tracking")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            # The approved list was read from the table, so nulls are valid in it; in a form a null is a mistake.
            partitions = self.chosen_partitions(table) if is_nothing(self.approved) else self.approved
            self.log.info("Dropping %d partition(s): %s", len(partitions), partition_label(partitions))
            snapshot = (
                table.maintenance.drop_partitions(partitions, change_tracking=change_tracking, **identity.arguments())
                if partitions
                else None
            )
        version = snapshot.id if snapshot else None
        return announce(context, table=self.table, op="drop_partitions", version=version, partitions=partitions)
