"""Brings the files of a table up to its log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from dynamic_table.commit_identity import commit_identity
from dynamic_table.hook import DynamicTableHook
from dynamic_table.rendered_argument import checked_flag
from dynamic_table.table_events import announce, with_table_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["TierLogOperator"]


class TierLogOperator(BaseOperator):
    """Makes files of what is in the log only, for a table with ``log.consistency=eventual``.

    Streams and batch writes do so themselves; this is for writers that do not, and for a moment of one's own choice,
    such as just before a batch job reads the files. Each record gets into the files once, whoever else is at it.

    :param table: ``database.table``. (templated)
    :param compact: compact afterwards what is due. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table", "compact")
    ui_color = "#dceaf2"

    def __init__(
        self,
        *,
        table: str,
        compact: bool | str = True,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**with_table_events(kwargs))
        self.table = table
        self.compact = compact
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The way to the table."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:
        """Tier the log and return the snapshot's id, None if the files were up to it."""
        compact = checked_flag(self.compact, "compact")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            snapshot = table.tier_log(compact=compact, **identity.arguments())
        return announce(context, table=self.table, op="tier_log", version=snapshot.id if snapshot else None)
