"""Drops partitions of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.partition_argument import partition_label
from dynamic_table.arguments.partition_listing import partitions_of
from dynamic_table.arguments.rendered_argument import checked_flag, is_nothing
from dynamic_table.operators.partition_drop import NO_APPROVAL_NEEDED, PartitionDropOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce
from dynamic_table.versions.sdk_exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib import DynamicTable

__all__ = ["DropPartitionsOperator"]


class DropPartitionsOperator(PartitionDropOperator):
    """Removes whole partitions, those given or those before a value, in one commit.

    Runs in parallel with streaming writers. By default the log receives no deletions: dropping a partition for its age
    is expiry, not a change of its rows.

    :param approved: the list from ``ApproveDropOperator``: exactly these partitions are dropped, and ``partitions``
        and ``before`` are ignored. If it is given and there is no list, because that task was marked as success, the
        drop fails. None: the drop needs no approval. (templated)
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
        # A template renders to None if the approval has left no list, so this is decided before.
        self._awaits_approval = approved is not None
        self.change_tracking = change_tracking

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the partitions and return the snapshot's id and the partitions."""
        change_tracking = checked_flag(self.change_tracking, "change_tracking")
        table = self.hook.load_table(self.table)
        partitions: Sequence[Mapping[str, str | None]]
        with commit_identity(context) as identity:
            if (snapshot := identity.own_commit(table)) is not None:
                self.log.info("An earlier try has dropped the partitions")
                partitions = partitions_of(table, snapshot.id)
            elif partitions := self._approved(table) if self._awaits_approval else self.chosen_partitions(table):
                self.log.info("Dropping %d partition(s): %s", len(partitions), partition_label(partitions))
                snapshot = table.maintenance.drop_partitions(
                    partitions, change_tracking=change_tracking, **identity.arguments()
                )
        version = snapshot.id if snapshot else None
        return announce(context, table=self.table, op="drop_partitions", version=version, partitions=partitions)

    def _approved(self, table: DynamicTable) -> Sequence[Mapping[str, str | None]]:
        """Return the approved partitions, or those chosen if nobody was to be asked."""
        if self.approved == NO_APPROVAL_NEEDED:
            return self.chosen_partitions(table)
        if is_nothing(self.approved):
            message = (
                f"no list of partitions of {self.table} was approved: the task that asks was marked as success, or has "
                "not listed any; nothing was dropped. Clear that task and answer it"
            )
            raise AirflowFailException(message)
        # The list was read from the table, so nulls are valid in it; in a form a null is a mistake.
        approved: Sequence[Mapping[str, str | None]] = self.approved
        return approved
