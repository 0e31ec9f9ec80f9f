"""Runs one operator in a separate process; it blocks during its work and is ended in the way Airflow does."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.create_branch import CreateBranchOperator
from dynamic_table.operators.create_tag import CreateTagOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator
from dynamic_table.operators.drop_table import DropTableOperator
from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator
from dynamic_table.operators.ingest_topic import IngestOperator
from dynamic_table.operators.process_changes import ProcessChangesOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.publish_branch import PublishBranchOperator
from dynamic_table.operators.reingest_rejected import ReingestRejectedOperator
from dynamic_table.operators.remove_orphan_files import RemoveOrphanFilesOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.rollback_table import RollbackTableOperator
from dynamic_table.operators.run_sql import SqlOperator
from dynamic_table.operators.run_sync import SyncDatabaseOperator
from dynamic_table.operators.table_operator import TaskEndedError
from dynamic_table.operators.tier_log import TierLogOperator
from tests.support.held_writes import held_before
from tests.support.task_context import task_context

__all__ = ["ENDED", "KINDS", "run_until_ended"]

ENDED = 3  # exit code after a clean-up
RED = [{"day": "a"}]
COLUMNS = {"day": "STRING", "id": "BIGINT"}
LONG_AGO = {"start": "2020-01-01T00:00:00+00:00", "end": "2021-01-01T00:00:00+00:00"}
# Every operator that writes, by table name.
KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "compact": (CompactTableOperator, {}),
    "tag": (CreateTagOperator, {"tag": "kept"}),
    "branch": (CreateBranchOperator, {"branch": "audit"}),
    "publish": (PublishBranchOperator, {"branch": "written"}),
    "drop": (DropPartitionsOperator, {"partitions": RED, "change_tracking": True}),
    "dropped": (DropTableOperator, {}),
    "expire": (ExpireSnapshotsOperator, {"retain_last": 1}),
    "orphans": (RemoveOrphanFilesOperator, {"older_than_hours": 0}),
    "made": (ProvisionTableOperator, {"columns": COLUMNS, "primary_key": ["day", "id"]}),
    "reprocess": (
        ReprocessPartitionsOperator,
        {"partitions": RED, "rows": "tests.support.day_rows:rows_of_day", "change_tracking": True},
    ),
    "rollback": (RollbackTableOperator, {"snapshot_id": 1}),
    "changes": (
        ProcessChangesOperator,
        {"process": "tests.support.day_rows:rows_of_changes", "into": "ended.changes", **LONG_AGO},
    ),
    "reingest": (ReingestRejectedOperator, {}),
    "ingest": (IngestOperator, {"topic": "ended.source"}),
    "synced": (SyncDatabaseOperator, {"topics": "of_sync.synced", "into": "ended", "workers": 1}),
    "tier": (TierLogOperator, {}),
    "sql": (SqlOperator, {"sql": "CALL sys.create_tag(table => 'ended.sql', tag => 'kept')", "master": "local[1]"}),
}


def run_until_ended(kind: str, extra: dict[str, Any], told: Connection) -> None:
    """Report when the operator blocks; exit with ``ENDED`` after it was ended and has cleaned up."""
    os.environ["AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT"] = json.dumps({"conn_type": "dynamic_table", "extra": extra})
    operator, arguments = KINDS[kind]
    about = {} if kind in ("sql", "synced") else {"table": f"ended.{kind}"}
    task = operator(task_id=kind, **about, **arguments)
    # As Airflow's task runner does; it does not stop the work itself.
    signal.signal(signal.SIGTERM, lambda *_: task.on_kill())

    def stand_still() -> None:
        told.send("here")
        while True:
            time.sleep(0.05)

    try:
        with held_before(stand_still):
            task.execute(task_context(task))
    except TaskEndedError:
        sys.exit(ENDED)
