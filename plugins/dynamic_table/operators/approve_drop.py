"""Asks a person before partitions are dropped: the task waits, without a worker, until somebody answers in the UI."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowSkipException

from dynamic_table.hook import DynamicTableHook
from dynamic_table.partition_argument import partition_label
from dynamic_table.partition_listing import partitions_to_drop
from dynamic_table.rendered_argument import checked_flag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

__all__ = ["PARTITIONS_KEY", "ApproveDropOperator"]

PARTITIONS_KEY = "partitions"  # of the XCom
SHOWN_MAX = 100


class ApproveDropOperator(ApprovalOperator):
    """Shows which partitions would go, and waits for *Approve* or *Reject*; the latter skips what follows.

    The list is the XCom ``partitions``: drop what it names, and what was approved is what goes, whatever has come
    meanwhile. A list that is empty asks nobody, and skips what follows.

    :param table: ``database.table``. (templated)
    :param partitions: as ``DropPartitionsOperator``. (templated)
    :param before: likewise. (templated)
    :param needs_approval: False: ask nobody, look at nothing, go on. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table", "partitions", "before", "needs_approval", "subject", "body")
    ui_color = "#f4dcdc"

    def __init__(
        self,
        *,
        table: str,
        partitions: Sequence[Mapping[str, Any]] | str | None = None,
        before: Mapping[str, Any] | str | None = None,
        needs_approval: bool | str = True,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(subject="Drop partitions?", **kwargs)
        self.table = table
        self.partitions = partitions
        self.before = before
        self.needs_approval = needs_approval
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The way to the table."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def execute(self, context: Context) -> Any:
        """Ask, and wait; Airflow goes on with ``execute_complete``."""
        if not checked_flag(self.needs_approval, "needs_approval"):
            self.log.info("No approval is needed")
            return None
        partitions = partitions_to_drop(self.hook.load_table(self.table), self.partitions, self.before)
        if not partitions:
            raise AirflowSkipException(f"{self.table} has no partitions to drop.")
        self.subject = f"Drop {len(partitions)} partition(s) of {self.table}?"
        self.body = _listed(partitions)
        context["ti"].xcom_push(key=PARTITIONS_KEY, value=partitions)
        return super().execute(context)


def _listed(partitions: Sequence[Mapping[str, str | None]]) -> str:
    """One line each, as code: a partition's value may look like markup."""
    lines = [f"    {partition_label([partition])}".replace("\n", " ") for partition in partitions[:SHOWN_MAX]]
    more = [f"\nand {len(partitions) - SHOWN_MAX} more"] if len(partitions) > SHOWN_MAX else []
    return "\n".join([*lines, *more])
