"""Brings the files of a table up to its log."""

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
    """Makes files of what is in the log only, for a table with ``log.consistency=eventual``.

    Streams and batch writes do so themselves; this is for writers that do not, and for a moment of one's own choice,
    such as just before a batch job reads the files. Each record gets into the files once, whoever else is at it.

    :param compact: compact afterwards what is due. (templated)
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
        """Tier the log and return the snapshot's id, None if the files were up to it."""
        compact = checked_flag(self.compact, "compact")
        table = self.hook.load_table(self.table)
        with commit_identity(context) as identity:
            snapshot = table.maintenance.tier_log(compact=compact, **identity.arguments())
        return announce(context, table=self.table, op="tier_log", version=snapshot.id if snapshot else None)
