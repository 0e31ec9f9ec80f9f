"""Tiers a table's log into its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_flag
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["TierLogOperator"]


class TierLogOperator(TableOperator):
    """Writes log records that are not in the files yet into files, for a table with ``log.consistency=eventual``.

    Streams and batch writes tier on their own. Use this operator for other writers, or to tier at a certain time, such
    as just before a batch job reads the files. Each record gets into the files once, even if others tier in parallel.

    :param compact: run due compactions afterwards. (templated)
    """

    template_fields: Sequence[str] = ("table", "compact")
    announces = True
    ui_color = "#dceaf2"

    def __init__(
        self,
        *,
        compact: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.compact = compact

    def execute(self, context: Context) -> dict[str, Any]:
        """Tier the log and return the snapshot's id, or None if the files were up to date."""
        compact = checked_flag(self.compact, "compact")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            snapshot = identity.own_commit(table)
            if snapshot is None:
                snapshot = table.maintenance.tier_log(compact=compact, **identity.arguments())
        return announce(context, table=self.table, op="tier_log", version=snapshot.id if snapshot else None)
