"""Drops partitions of a table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from dynamic_table.commit_identity import commit_identity
from dynamic_table.hook import DynamicTableHook
from dynamic_table.partition_argument import partition_label
from dynamic_table.partition_listing import partitions_to_drop
from dynamic_table.rendered_argument import checked_flag
from dynamic_table.table_events import announce, with_table_events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

__all__ = ["DropPartitionsOperator"]


class DropPartitionsOperator(BaseOperator):
    """Removes whole partitions, those named or those before a value, in one commit.

    Streaming writers go on meanwhile. By default the log hears nothing of it: what is dropped for its age was not
    deleted by anybody.

    :param table: ``database.table``. (templated)
    :param partitions: the partitions, ``[{column: value}, ...]``; each must exist. (templated)
    :param before: instead, ``{column: value}``: every partition whose column is smaller; none is fine. (templated)
    :param change_tracking: write the deletions into the log as well. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table", "partitions", "before", "change_tracking")
    template_fields_renderers: ClassVar[dict[str, str]] = {"partitions": "json", "before": "json"}
    ui_color = "#f4dcdc"

    def __init__(
        self,
        *,
        table: str,
        partitions: Sequence[Mapping[str, Any]] | str | None = None,
        before: Mapping[str, Any] | str | None = None,
        change_tracking: bool | str = False,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**with_table_events(kwargs))
        self.table = table
        self.partitions = partitions
        self.before = before
        self.change_tracking = change_tracking
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The way to the table."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop them and return the snapshot's id and the partitions."""
        change_tracking = checked_flag(self.change_tracking, "change_tracking")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            partitions = partitions_to_drop(table, self.partitions, self.before)
            self.log.info("Dropping %d partition(s): %s", len(partitions), partition_label(partitions))
            snapshot = (
                table.drop_partitions(partitions, change_tracking=change_tracking, **identity.arguments())
                if partitions
                else None
            )
        version = snapshot.id if snapshot else None
        return announce(context, table=self.table, op="drop_partitions", version=version, partitions=partitions)
