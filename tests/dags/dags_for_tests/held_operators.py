"""Every kind of operator, blocked at a chosen point of its first try, so that a test can kill it there.

``conf``: ``point`` is ``before`` (before its first visible write) or ``after`` (when all is done but Airflow does not
know it yet). It continues once ``<Airflow's home>/held/go`` exists; ``held/<table>`` holds the id of the blocked
process.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.create_branch import CreateBranchOperator
from dynamic_table.operators.create_tag import CreateTagOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator
from dynamic_table.operators.drop_table import DropTableOperator
from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.publish_branch import PublishBranchOperator
from dynamic_table.operators.remove_orphan_files import RemoveOrphanFilesOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.rollback_table import RollbackTableOperator
from dynamic_table.operators.validate_table import ValidateTableOperator
from dynamic_table.retry_policy import RETRY_ARGUMENTS
from tests.support.held_writes import held_before

if TYPE_CHECKING:
    from airflow.sdk import Context

HELD = Path(os.environ["AIRFLOW_HOME"]) / "held"


def wait_here(table: str) -> None:
    """Report that the test may kill this process now."""
    HELD.mkdir(exist_ok=True)
    (HELD / table).write_text(str(os.getpid()))
    while not (HELD / "go").exists():
        time.sleep(0.05)


def held(kind: type[Any]) -> type[Any]:
    """Return a subclass of the operator that blocks at its point."""

    class Held(kind):  # type: ignore[misc]  # any of them
        def execute(self, context: Context) -> Any:
            point = context["params"]["point"] if context["ti"].try_number == 1 else None
            if point == "before" and kind is ValidateTableOperator:  # it only reads
                wait_here(self.table)
            with held_before(lambda: wait_here(self.table)) if point == "before" else nullcontext():
                done = super().execute(context)
            if point == "after":
                wait_here(self.table)
            return done

    return Held


RED = {"partitions": [{"day": "a"}]}
KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "compact": (CompactTableOperator, {}),
    "tag": (CreateTagOperator, {"tag": "kept"}),
    "branch": (CreateBranchOperator, {"branch": "audit"}),
    "publish": (PublishBranchOperator, {"branch": "written"}),
    "drop": (DropPartitionsOperator, RED),
    "dropped": (DropTableOperator, {}),
    "expire": (ExpireSnapshotsOperator, {"retain_last": 1}),
    "orphans": (RemoveOrphanFilesOperator, {"older_than_hours": 0}),
    "made": (ProvisionTableOperator, {"columns": {"day": "STRING", "id": "BIGINT"}, "primary_key": ["day", "id"]}),
    "reprocess": (ReprocessPartitionsOperator, {**RED, "rows": "tests.support.day_rows:rows_of_day"}),
    "rollback": (RollbackTableOperator, {"snapshot_id": 1}),
    "validate": (
        ValidateTableOperator,
        {"expectations": [{"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}]},
    ),
}

with DAG(
    dag_id="held_operators",
    schedule=None,
    default_args=RETRY_ARGUMENTS | {"retry_delay": timedelta(seconds=1)},
    params={"point": "none", "round": "r"},
    render_template_as_native_obj=True,
):
    for name, (kind, arguments) in KINDS.items():
        held(kind)(task_id=name, table="{{ params.round }}." + name, **arguments)
