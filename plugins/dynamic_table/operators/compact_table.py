"""Compacts a table, or one partition or some buckets of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.compaction_shares import checked_share, share_label, size_of
from dynamic_table.arguments.partition_argument import checked_partition
from dynamic_table.arguments.rendered_argument import checked_flag, is_nothing
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.engine_operator import ENGINE_FIELDS, EngineOperator
from dynamic_table.policies.commit_identity import CommitIdentity, commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from dynamic_table.arguments.compaction_shares import Share
    from storage_lib import DynamicTable
    from storage_lib.file_store.compact import CompactionTask

__all__ = ["CompactTableOperator"]


class CompactTableOperator(EngineOperator):
    """Rewrites a table's files into fewer ones, in parallel with streaming writers.

    The commit is optimistic: if another commit replaces the same files first, the task deletes its files and fails with
    a CommitConflictError, and the DAG's retry policy runs it again.

    :param partition: ``{column: value}`` of the partition to compact; None: the whole table. (templated)
    :param buckets: the buckets to compact, as returned by ``ListCompactionsOperator``; None: all. (templated)
    :param full: merge each bucket into one sorted run, instead of only the compactions that are due. (templated)
    """

    template_fields: Sequence[str] = ("table", "partition", "buckets", "full", *ENGINE_FIELDS)
    template_fields_renderers: ClassVar[dict[str, str]] = {"partition": "json", "buckets": "json", "spark_conf": "json"}
    announces = True
    ui_color = "#e6e0f2"

    def __init__(
        self,
        *,
        partition: Mapping[str, Any] | str | None = None,
        buckets: Share | str | None = None,
        full: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.buckets: Any = buckets
        self.full = full

    @property
    def label(self) -> str:
        """The table and the buckets to compact, for the ``map_index_template`` of mapped tasks."""
        return f"{self.table} {share_label(self.buckets)}" if self.buckets else self.table

    def execute(self, context: Context) -> dict[str, Any]:
        """Compact and return the snapshot's id, or None if nothing was due."""
        partition = None if self.partition is None else checked_partition(self.partition)
        what: dict[str, Any] = {
            "partition": partition,
            "full": checked_flag(self.full, "full"),
            "buckets": None if is_nothing(self.buckets) else checked_share(self.buckets),
        }
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity, progress_in_log(self.log):
            plan = table.maintenance.plan_compaction(**what)
            if self.uses_spark(sum(map(size_of, plan))):
                snapshot = self._compact_by_spark(table, plan, identity)
            else:
                snapshot = table.maintenance.compact_planned(plan, **identity.arguments())
        return announce(
            context,
            table=self.table,
            op="compact",
            version=snapshot.id if snapshot else None,
            partitions=self._partitions(partition),
        )

    def _partitions(self, partition: Mapping[str, str] | None) -> list[Mapping[str, str | None]]:
        if self.buckets:
            return [each["partition"] for each in self.buckets if each["partition"]]
        return [partition] if partition else []

    def _compact_by_spark(self, table: DynamicTable, plan: Sequence[CompactionTask], identity: CommitIdentity) -> Any:
        from storage_lib.spark import compact

        with self.spark() as spark:
            return compact(spark, table, plan=plan, **identity.arguments())
