"""Compactions whose first try always conflicts: another commit replaces the same files in the meantime."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.retry_policy import RETRY_ARGUMENTS

if TYPE_CHECKING:
    from airflow.sdk import Context


class RacedCompactOperator(CompactTableOperator):
    """Compacts in the library's two steps; on the first try another commit overwrites the table between them."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Lose the first race and win the second."""
        from dynamic_table.policies.commit_identity import commit_identity
        from dynamic_table.table_events import announce

        table = self.hook.load_table(self.table)
        if context["ti"].try_number == 1:
            self.wait_for_work(table)
        done = [table.maintenance.run_compaction(task) for task in table.maintenance.plan_compaction()]
        messages = [message for message in done if message is not None]
        if context["ti"].try_number == 1:
            self.be_faster(table)
        with commit_identity(context) as identity:
            snapshot = table.maintenance.commit_compaction(messages, **identity.arguments())
        return announce(context, table=self.table, op="compact", version=snapshot.id if snapshot else None)

    def wait_for_work(self, table: Any) -> None:
        """Return at once: the table has files to compact."""

    def be_faster(self, table: Any) -> None:
        """Overwrite without change tracking, which computes no difference, and append a file for the second try."""
        table.overwrite(table.to_arrow(), partition={}, change_tracking=False)
        table.append(table.to_arrow())


class RivalledCompactOperator(RacedCompactOperator):
    """Conflicts with another compaction, which removes no row of concurrent writers."""

    def wait_for_work(self, table: Any) -> None:
        """Wait until the stream has written files to compact."""
        while not table.maintenance.plan_compaction():
            time.sleep(0.1)

    def be_faster(self, table: Any) -> None:
        """Compact all files."""
        while table.compact(full=True) is None:
            time.sleep(0.1)


with DAG(dag_id="lost_race", schedule=None, default_args=RETRY_ARGUMENTS):
    RacedCompactOperator(task_id="compact_table", table="life.events")

with DAG(dag_id="lost_race_daily", schedule=None, default_args=RETRY_ARGUMENTS):
    RivalledCompactOperator(task_id="compact_table", table="crowd.daily")
