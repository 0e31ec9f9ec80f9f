"""Expires a table's old snapshots, tags and branches, and deletes the files that only they need."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_count, checked_number, is_nothing
from dynamic_table.operators.table_operator import TableOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ExpireSnapshotsOperator"]

HOUR_MILLIS = 3_600_000


class ExpireSnapshotsOperator(TableOperator):
    """Removes old snapshots, except for the newest ones, tagged ones and those that a consumer needs.

    Tags and branches with a ``time_retained`` are removed once it has passed.

    :param retain_last: minimum number of newest snapshots to keep. (templated)
    :param older_than_hours: expire only older snapshots; None: of any age. (templated)
    """

    template_fields: Sequence[str] = ("table", "retain_last", "older_than_hours")
    ui_color = "#f2e6d8"

    def __init__(
        self,
        *,
        retain_last: int | str = 10,
        older_than_hours: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.retain_last = retain_last
        self.older_than_hours = older_than_hours

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow's signature
        """Expire, and return the numbers of removed snapshots and files; idempotent, since it makes no commit."""
        hours = None if is_nothing(self.older_than_hours) else checked_number(self.older_than_hours, "older_than_hours")
        retain_last = checked_count(self.retain_last, "retain_last", least=1)
        table = self.hook.load_table(self.table)
        # Expire tags and branches first, so that their snapshots can expire as well.
        tags, branches = table.tags.expire(), table.branches.expire()
        expired = table.maintenance.expire_snapshots(
            retain_last=retain_last,
            older_than_millis=None if hours is None else int(time.time() * 1000 - hours * HOUR_MILLIS),
        )
        return {
            "table": self.table,
            "op": "expire",
            "snapshots": expired.snapshot_count,
            "data_files": expired.data_file_count,
            "tags": list(tags),
            "branches": list(branches),
        }
