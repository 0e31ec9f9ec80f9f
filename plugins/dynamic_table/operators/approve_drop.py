"""Asks for approval before partitions are dropped; the task waits for the answer in the UI without a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from dynamic_table.arguments.partition_argument import partition_label
from dynamic_table.arguments.partition_listing import refuse_missing
from dynamic_table.arguments.rendered_argument import checked_flag, is_nothing
from dynamic_table.operators.partition_drop import NO_APPROVAL_NEEDED, PartitionDropOperator
from dynamic_table.versions.sdk_exceptions import AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

__all__ = ["PARTITIONS_KEY", "ApproveDropOperator"]

PARTITIONS_KEY = "partitions"  # key of the XCom
LISTED_KEY = "listed_partitions"  # key of the XCom with the list before it is approved
SHOWN_MAX = 100


class ApproveDropOperator(PartitionDropOperator, ApprovalOperator):
    """Shows which partitions would be dropped and waits for *Approve* or *Reject*; *Reject* skips downstream tasks.

    After *Approve* the list is the XCom ``partitions``: pass it to ``DropPartitionsOperator`` as ``approved``, which
    then drops exactly the approved partitions, and none if this task was marked as success instead. An empty list needs
    no approval and skips downstream tasks.

    :param needs_approval: False: succeed at once, without listing partitions; the XCom says so. (templated)
    """

    template_fields: Sequence[str] = (*PartitionDropOperator.template_fields, "needs_approval", "subject", "body")

    def __init__(self, *, needs_approval: bool | str = True, **kwargs: Any) -> None:
        super().__init__(subject="Drop partitions?", **kwargs)
        self.needs_approval = needs_approval

    def execute(self, context: Context) -> Any:
        """Ask and defer; Airflow resumes the task with ``execute_complete``."""
        if not checked_flag(self.needs_approval, "needs_approval"):
            self.log.info("No approval is needed")
            context["ti"].xcom_push(key=PARTITIONS_KEY, value=NO_APPROVAL_NEEDED)
            return None
        table = self.hook.load_table(self.table)
        partitions = self.chosen_partitions(table)
        if not partitions:
            raise AirflowSkipException(f"{self.table} has no partitions to drop.")
        if not is_nothing(self.partitions):
            # Fail before the approval if the drop is not possible.
            refuse_missing(table, partitions)
        self.subject = f"Drop {len(partitions)} partition(s) of {self.table}?"
        self.body = _listed(partitions)
        context["ti"].xcom_push(key=LISTED_KEY, value=partitions)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Hand on the list after *Approve*; Airflow keeps a waiting task's XComs."""
        answer = super().execute_complete(context=context, event=event)
        if answer["chosen_options"] == [self.APPROVE]:
            ti = context["ti"]
            listed = ti.xcom_pull(task_ids=self.task_id, key=LISTED_KEY, map_indexes=ti.map_index)
            ti.xcom_push(key=PARTITIONS_KEY, value=listed)
        return answer


def _listed(partitions: Sequence[Mapping[str, str | None]]) -> str:
    """Return one line per partition, indented as a code block because values may look like markup."""
    lines = [f"    {partition_label([partition])}".replace("\n", " ") for partition in partitions[:SHOWN_MAX]]
    more = [f"\nand {len(partitions) - SHOWN_MAX} more"] if len(partitions) > SHOWN_MAX else []
    return "\n".join([*lines, *more])
