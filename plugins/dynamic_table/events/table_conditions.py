"""Conditions that sensors wait for, checked in the same way on a worker and in the triggerer.

A condition is a frozen value that is stored in Airflow's database as JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib import DynamicTable

__all__ = [
    "Condition",
    "LogLagBelow",
    "Look",
    "PartitionHasData",
    "SinkIsHealthy",
    "SnapshotNewerThan",
    "condition_of",
    "spelled",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Outcome of one check: ``text`` for the task's log, ``result`` for downstream tasks."""

    is_met: bool
    text: str
    result: Mapping[str, Any] = field(default_factory=dict)


class Condition(Protocol):
    """A condition of a table that a sensor can wait for."""

    def look(self, table: DynamicTable) -> Look:
        """Check the table once; reads metadata only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHasData:
    """A partition exists and has at least ``min_rows`` rows, counted before versions of a key are merged."""

    partition: Mapping[str, str]
    min_rows: int = 1

    def look(self, table: DynamicTable) -> Look:
        """Check the partition's files."""
        from storage_lib.errors import NotFoundError

        name = "/".join(f"{column}={value}" for column, value in self.partition.items())
        try:
            described = table.describe(self.partition)
        except NotFoundError:
            return Look(is_met=False, text=f"{table.name} has no partition {name} yet")
        rows = int(described["rows (physical)"])
        return Look(
            is_met=rows >= self.min_rows,
            text=f"partition {name} of {table.name} has {rows} rows in its files, of {self.min_rows} wanted",
            result={"table": table.name, "partition": dict(self.partition), "rows": rows},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotNewerThan:
    """The newest snapshot has an id above ``snapshot_id`` and a time after ``timestamp_millis`` (epoch)."""

    snapshot_id: int = 0
    timestamp_millis: int = 0

    def look(self, table: DynamicTable) -> Look:
        """Check the newest snapshot."""
        snapshot = table.new_read().plan().snapshot
        if snapshot is None:
            return Look(is_met=False, text=f"{table.name} has no snapshot yet")
        is_newer = snapshot.id > self.snapshot_id and snapshot.time_millis > self.timestamp_millis
        return Look(
            is_met=is_newer,
            text=f"the newest snapshot of {table.name} is {snapshot.id}",
            result={"table": table.name, "version": snapshot.id, "timestamp_millis": snapshot.time_millis},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLagBelow:
    """At most ``max_records`` records of the table's log are not in its files yet."""

    max_records: int

    def look(self, table: DynamicTable) -> Look:
        """Compare the log's end with the offsets in the files; only the files of an eventual table lag its log."""
        from storage_lib.errors import UnavailableError

        described = table.describe()
        lag = described.get("log records not yet in files")
        if lag is None and described.get("log end", "").startswith("unknown"):
            message = f"The log of {table.name} does not report its end: {described['log end']}"
            raise UnavailableError(message)
        behind = int(lag or 0)
        return Look(
            is_met=behind <= self.max_records,
            text=f"{behind} records of {table.name} are in its log and not in its files",
            result={"table": table.name, "lag": behind},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkIsHealthy:
    """The table's newest sink runs, has finished a batch, and its heartbeat is younger than ``heartbeat_age_max``.

    ``lag_max`` limits the records of its source that are not in the table yet, ``commit_age_max`` the age of the
    table's newest commit; None: no limit. Ages are in seconds. An unknown lag counts as too large.
    """

    jobs_directory: str
    heartbeat_age_max: float = 60
    lag_max: int | None = None
    commit_age_max: float | None = None

    def look(self, table: DynamicTable) -> Look:
        """Check the job's files and the newest snapshot, and the source's end if the lag is limited."""
        from dynamic_table.sinks.sink_facts import sink_facts
        from dynamic_table.sinks.sink_job import newest_job

        job = newest_job(Path(self.jobs_directory) / table.name)
        if job is None:
            return Look(is_met=False, text=f"{table.name} has no sink yet")
        facts = {"table": table.name, **sink_facts(job, lambda: table, with_lag=self.lag_max is not None)}
        wrong = self._complaint(facts)
        text = f"the sink of {table.name} in {job.directory}: {wrong or 'healthy'}"
        return Look(is_met=wrong is None, text=text, result=facts)

    def _complaint(self, facts: Mapping[str, Any]) -> str | None:
        if facts["state"] != "running":
            return f"is {facts['state']}, {facts['error']}" if facts.get("error") else f"is {facts['state']}"
        if facts.get("batch_id") is None:
            return "has finished no batch yet"
        if facts["heartbeat_age_seconds"] is None or facts["heartbeat_age_seconds"] > self.heartbeat_age_max:
            return f"its heartbeat is {facts['heartbeat_age_seconds']} s old"
        commit_age = facts.get("commit_age_seconds")
        if self.commit_age_max is not None and (commit_age is None or commit_age > self.commit_age_max):
            return f"the newest commit is {commit_age} s old"
        if self.lag_max is not None and (facts.get("lag") is None or facts["lag"] > self.lag_max):
            return f"its lag is {facts.get('lag', facts.get('unknown'))}"
        return None


_KINDS: Mapping[str, type[Any]] = {
    each.__name__: each for each in (PartitionHasData, SnapshotNewerThan, LogLagBelow, SinkIsHealthy)
}


def spelled(condition: Condition) -> dict[str, Any]:
    """Return the condition as a JSON object."""
    return {"kind": type(condition).__name__, **asdict(condition)}  # type: ignore[call-overload]  # all are dataclasses


def condition_of(spelling: Mapping[str, Any]) -> Condition:
    """Recreate the condition from the result of ``spelled``."""
    arguments = dict(spelling)
    condition: Condition = _KINDS[arguments.pop("kind")](**arguments)
    return condition
