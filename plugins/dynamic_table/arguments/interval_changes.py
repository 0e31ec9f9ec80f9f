"""Changes of a run's interval, resolved to snapshots once: every retry and clear of the run sees the same ones.

    reader = interval_changes(context, hook.load_table("shop.orders")).read()          in an operator or a @task
    {{ macros.dynamic_table.interval_changes("shop.orders").spark_range }}             in a template: 17,23
    {{ macros.dynamic_table.interval_changes("shop.orders").spark_options }}           in a native template
    spark.read....options(**spark_options)                                             in a Spark job

The interval is the run's data interval, or the period that its partition date covers. Its snapshots are those made in
[start, end). They are kept in the task's state store, so later commits, a clock that was set back and the expiry of
older snapshots do not affect the run.
"""

from __future__ import annotations

from calendar import timegm
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dynamic_table.versions.kept_state import NEVER_EXPIRE, task_state_store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import pyarrow as pa
    from airflow.sdk import Context

    from storage_lib import DynamicTable

__all__ = ["IntervalChanges", "changes_in_interval", "interval_changes", "run_interval"]

STORE_KEY = "interval_changes"
ONE_DAY = timedelta(days=1)
# Maximum seconds between a commit's timestamp and the moment at which the commit becomes visible.
SETTLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalChanges:
    """The snapshots of one table made in one interval: after ``start_snapshot_id``, up to ``end_snapshot_id``."""

    table: DynamicTable
    start_snapshot_id: int
    end_snapshot_id: int

    @property
    def is_empty(self) -> bool:
        """Whether no snapshot was committed in the interval."""
        return self.start_snapshot_id == self.end_snapshot_id

    @property
    def spark_range(self) -> str:
        """The value of Spark's read option ``incremental-between``."""
        return f"{self.start_snapshot_id},{self.end_snapshot_id}"

    @property
    def spark_options(self) -> dict[str, str]:
        """Options of Spark's read, for native templates, which would turn the bare range into numbers."""
        return {"incremental-between": self.spark_range}

    def read(self, *, mode: str = "net", partition: Mapping[str, Any] | None = None) -> pa.RecordBatchReader:
        """Return the changes with their row kinds; with ``partition``, only its changes (no other files are opened).

        ``mode`` as in ``DynamicTable.changes``: ``net`` returns at most one change per key, ``every`` all changes.
        """
        import pyarrow as pa

        from storage_lib.schema.placing.partition import PartitionCodec

        table, ids = self.table, (self.start_snapshot_id, self.end_snapshot_id)
        splits = table.new_read().plan_changes(start_snapshot_id=ids[0], end_snapshot_id=ids[1], mode=mode)
        if partition is not None:
            wanted = PartitionCodec(table.schema).encode(partition)
            splits = tuple(split for split in splits if split.partition == wanted)
        empty = table.changes(start_snapshot_id=ids[1], end_snapshot_id=ids[1])
        return pa.RecordBatchReader.from_batches(
            empty.schema, (batch for split in splits for batch in table.new_read().read_changes(split))
        )


def interval_changes(
    context: Context, table: DynamicTable, *, interval: tuple[datetime, datetime] | None = None
) -> IntervalChanges:
    """Resolve the run's interval (or another) for a table, or return what an earlier try of this task resolved.

    Raises ``InvalidInputError`` if the run has no interval or the interval has not ended, ``SnapshotExpiredError`` if
    snapshots of the interval may have been expired.
    """
    start, end = interval or run_interval(context)
    store, asked = task_state_store(context), f"{start.isoformat()}/{end.isoformat()}"
    key = f"{STORE_KEY}/{table.name}/{asked}"
    stored: Any = None if store is None else store.get(key)
    if not isinstance(stored, dict) or stored["table"] != table.uuid:
        found = changes_in_interval(table, start, end)
        stored = {"table": table.uuid, "start": found.start_snapshot_id, "end": found.end_snapshot_id}
        if store is not None:
            # The default retention is thirty days, and a run may be cleared later.
            store.set(key, stored, retention=NEVER_EXPIRE)
    return IntervalChanges(table=table, start_snapshot_id=int(stored["start"]), end_snapshot_id=int(stored["end"]))


def changes_for_template(context: Any, table: str, conn_id: str = "dynamic_table_default") -> IntervalChanges:
    """Implement the template macro ``interval_changes``: ``{{ macros.dynamic_table.interval_changes("db.t") }}``."""
    from dynamic_table.hook import DynamicTableHook

    return interval_changes(context, DynamicTableHook(dynamic_table_conn_id=conn_id).load_table(table))


def changes_in_interval(table: DynamicTable, start: datetime, end: datetime) -> IntervalChanges:
    """Resolve ``[start, end)`` to snapshots; waits up to a few seconds until no further commit can fall into it."""
    start_millis, end_millis = _millis(start), _millis(end)
    _wait_until_over(table, end, end_millis)
    first, last = table.new_read().snapshots_between(start_millis, end_millis)
    return IntervalChanges(table=table, start_snapshot_id=first, end_snapshot_id=last)


def run_interval(context: Context, *, partition_period: timedelta = ONE_DAY) -> tuple[datetime, datetime]:
    """Return the run's data interval; in a partitioned DAG, ``partition_period`` from the partition date on.

    Raises ``InvalidInputError`` for a run with neither and for an empty interval.
    """
    from storage_lib.errors import InvalidInputError

    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if (partition_date := context.get("partition_date")) is not None:
        start, end = partition_date, partition_date + partition_period
    if start is None or end is None:
        message = (
            "this run has no data interval and no partition date; start it by its schedule or a backfill, or with a "
            "logical date or partition key, or give the interval's start and end"
        )
        raise InvalidInputError(message)
    if start >= end:
        message = (
            f"this run's data interval {start.isoformat()} to {end.isoformat()} has no length: a cron schedule has no "
            "intervals by default; give the DAG CronDataIntervalTimetable or CronPartitionTimetable"
        )
        raise InvalidInputError(message)
    return start, end


def _wait_until_over(table: DynamicTable, end: datetime, end_millis: int) -> None:
    from storage_lib.errors import InvalidInputError

    clock = table.environment.clock
    newest = table.inspect.latest_snapshot()
    # Snapshot timestamps never decrease: after a snapshot of the next interval, none can be added to this one.
    if newest is not None and newest.time_millis >= end_millis:
        return
    missing_seconds = (end_millis - clock.now_millis()) / 1000 + SETTLE_SECONDS
    if missing_seconds > SETTLE_SECONDS:
        message = (
            f"the interval until {end.isoformat()} is not over, so table {table.name} may still change in it; run "
            "this task after the interval's end"
        )
        raise InvalidInputError(message)
    if missing_seconds > 0:
        clock.sleep(missing_seconds)


def _millis(moment: datetime) -> int:
    """Return the epoch milliseconds, rounded down, so that adjacent intervals still share their boundary."""
    # Integer arithmetic: the difference of two of Airflow's datetimes can't be divided.
    return timegm(moment.utctimetuple()) * 1000 + moment.microsecond // 1000
