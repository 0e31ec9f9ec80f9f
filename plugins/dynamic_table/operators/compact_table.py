"""Compacts a table, or one partition of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.commit_identity import CommitIdentity, commit_identity
from dynamic_table.operators.engine_operator import ENGINE_FIELDS, EngineOperator
from dynamic_table.partition_argument import checked_partition
from dynamic_table.rendered_argument import checked_flag
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib import DynamicTable

__all__ = ["CompactTableOperator"]


class CompactTableOperator(EngineOperator):
    """Rewrites a table's files into fewer ones; streaming writers go on meanwhile.

    Optimistic: if somebody replaces the same files first, the task fails with a CommitConflictError, leaves nothing
    behind, and the DAG's retry policy runs it again.

    :param partition: ``{column: value}`` of the partition to compact; None: the whole table. (templated)
    :param full: merge everything into one run per bucket, instead of only what is due. (templated)
    """

    template_fields: Sequence[str] = ("table", "partition", "full", *ENGINE_FIELDS)
    template_fields_renderers: ClassVar[dict[str, str]] = {"partition": "json", "spark_conf": "json"}
    announces = True
    ui_color = "#e6e0f2"

    def __init__(
        self,
        *,
        partition: Mapping[str, Any] | str | None = None,
        full: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.full = full

    def execute(self, context: Context) -> dict[str, Any]:
        """Compact and return the snapshot's id, None if nothing was to be done."""
        partition = None if self.partition is None else checked_partition(self.partition)
        full = checked_flag(self.full, "full")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            size = sum(
                file.file_size
                for task in table.plan_compaction(partition=partition, full=full)
                for file in task.unit.files
            )
            if self.uses_spark(size):
                snapshot = self._compact_by_spark(table, partition, full, identity)
            else:
                snapshot = table.compact(partition=partition, full=full, **identity.arguments())
        return announce(
            context,
            table=self.table,
            op="compact",
            version=snapshot.id if snapshot else None,
            partitions=[partition] if partition else [],
        )

    def _compact_by_spark(self, table: DynamicTable, partition: Any, full: bool, identity: CommitIdentity) -> Any:  # noqa: FBT001
        from storage_lib.spark import compact

        with self.spark() as spark:
            return compact(spark, table, partition=partition, full=full, **identity.arguments())
