"""What a sensor can wait for: one look at a table, and whether that is it. The same in a worker and in the triggerer.

A condition is a frozen value that travels through Airflow's database as JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib import DynamicTable

__all__ = ["Condition", "LogLagBelow", "Look", "PartitionHasData", "SnapshotNewerThan", "condition_of", "spelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen: ``text`` for the task's log, ``result`` for those who come after the sensor."""

    is_met: bool
    text: str
    result: Mapping[str, Any] = field(default_factory=dict)


class Condition(Protocol):
    """Something to wait for."""

    def look(self, table: DynamicTable) -> Look:
        """Look once. Reads metadata only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHasData:
    """A partition is there with at least ``min_rows`` rows, counted before versions of one key are merged."""

    partition: Mapping[str, str]
    min_rows: int = 1

    def look(self, table: DynamicTable) -> Look:
        """Look at the partition's files."""
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
    """The newest snapshot has a larger id than ``snapshot_id``, and was made after ``timestamp_millis`` (epoch)."""

    snapshot_id: int = 0
    timestamp_millis: int = 0

    def look(self, table: DynamicTable) -> Look:
        """Look at the newest snapshot."""
        snapshot = table.plan().snapshot
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
    """At most ``max_records`` records are in the table's log and not yet in its files."""

    max_records: int

    def look(self, table: DynamicTable) -> Look:
        """Compare the log's end with what the files hold. Only an eventual table's files come after its log."""
        from storage_lib.errors import UnavailableError

        described = table.describe()
        lag = described.get("log records not yet in files")
        if lag is None and described.get("log end", "").startswith("unknown"):
            message = f"The log of {table.name} does not tell its end: {described['log end']}"
            raise UnavailableError(message)
        behind = int(lag or 0)
        return Look(
            is_met=behind <= self.max_records,
            text=f"{behind} records of {table.name} are in its log and not in its files",
            result={"table": table.name, "lag": behind},
        )


_KINDS: Mapping[str, type[Any]] = {each.__name__: each for each in (PartitionHasData, SnapshotNewerThan, LogLagBelow)}


def spelled(condition: Condition) -> dict[str, Any]:
    """Return the condition as JSON."""
    return {"kind": type(condition).__name__, **asdict(condition)}  # type: ignore[call-overload]  # all are dataclasses


def condition_of(spelling: Mapping[str, Any]) -> Condition:
    """Return what ``spelled`` was given."""
    arguments = dict(spelling)
    condition: Condition = _KINDS[arguments.pop("kind")](**arguments)
    return condition
