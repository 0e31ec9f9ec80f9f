"""One DAG that waits for a table's next snapshot, and one that runs after every commit to the table."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, task

from dynamic_table.retry_policy import RETRY_ARGUMENTS
from dynamic_table.sensors.table_sensors import SnapshotSensor
from dynamic_table.triggers.snapshot_trigger import SnapshotTrigger

TABLE = "life.watched"

with DAG(dag_id="wait_for_a_snapshot", schedule=None, default_args=RETRY_ARGUMENTS):
    SnapshotSensor(task_id="wait", table=TABLE, newer_than_snapshot=1, deferrable=True, poke_interval=0.5, timeout=120)

commits = Asset(
    name="commits of life.watched",
    uri="watched://life/watched",
    watchers=[AssetWatcher(name="snapshots", trigger=SnapshotTrigger(table=TABLE, poll_seconds=0.5))],
)

with DAG(dag_id="after_a_commit", schedule=[commits]):

    @task
    def told(triggering_asset_events: Any = None) -> list[Any]:
        """Return the payloads of the commits' events."""
        return [event.extra["payload"] for events in triggering_asset_events.values() for event in events]

    told()
