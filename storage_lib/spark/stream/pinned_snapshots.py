"""The snapshots at which a stream reads other tables, stored in its checkpoint: the same ones at every start.

A tag in each of these tables, named after the stream's query id, prevents the snapshot from expiring. The tag is never
deleted automatically, because a stream may be restarted from its checkpoint at any time.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    StorageError,
)
from storage_lib.spark.data_source.checkpoint_identity import settled, settled_query_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

SNAPSHOTS_FILE = "dynamic-table-snapshots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Snapshot of one table (0: the empty table), and the tag that keeps it (None: not tagged)."""

    snapshot_id: int
    tag: str | None = None


def pinned_snapshots(
    spark: SparkSession, table: DynamicTable, checkpoint: str | None, others: Mapping[str, DynamicTable]
) -> dict[str, Pin]:
    """Return the snapshots of the tables in ``others`` with which the stream into ``table`` began, each kept by a tag.

    The first start uses the newest snapshots. Without a checkpoint nothing is stored or tagged. Raises
    ``InvalidInputError`` if the checkpoint's stream did not read all of ``others`` before, and
    ``SnapshotExpiredError`` if one of the snapshots has expired.
    """
    newest = {name: other.inspect.latest_snapshot_id() or 0 for name, other in others.items()}
    if checkpoint is None:
        return {name: Pin(snapshot_id=snapshot_id) for name, snapshot_id in newest.items()}
    text = settled(spark, f"{checkpoint.rstrip('/')}/{SNAPSHOTS_FILE}", json.dumps(newest, sort_keys=True))
    pinned: dict[str, int] = json.loads(text)
    missing = sorted(set(newest) - set(pinned))
    if missing:
        message = (
            f"table {table.name}: the stream of checkpoint {checkpoint} reads {', '.join(sorted(pinned))} at fixed "
            f"snapshots, and did not read {', '.join(missing)} when it began. Give the new query its own checkpoint"
        )
        raise InvalidInputError(message)
    tag = f"stream-{settled_query_id(spark, checkpoint, table)}"
    stream = f"table {table.name}: the stream of checkpoint {checkpoint}"
    return {name: pin(stream, other, int(pinned[name]), tag) for name, other in others.items()}


def pin(stream: str, other: DynamicTable, snapshot_id: int, tag: str) -> Pin:
    """Keep a snapshot by a tag, unless the tag exists already. ``stream`` is the beginning of error messages.

    Raises ``SnapshotExpiredError`` with the remedy if neither the tag nor the snapshot exists. If the table can't be
    written, warns and returns a pin without a tag.
    """
    if snapshot_id == 0:
        return Pin(snapshot_id=0)
    try:
        if other.tags.exists(tag):
            _check(stream, other, snapshot_id, tag)
        else:
            other.tags.create(tag, snapshot_id)
    except AlreadyExistsError:
        _check(stream, other, snapshot_id, tag)
    except (NotFoundError, SnapshotExpiredError) as error:
        message = (
            f"{stream} reads {other.name} at snapshot {snapshot_id} for as long as it exists, and that has expired; "
            f"tag {tag!r}, which keeps it, is missing. With another snapshot its rows would contradict those that it "
            "has written: start the query with a new checkpoint, into an empty table"
        )
        raise SnapshotExpiredError(message) from error
    except InvalidInputError:
        raise
    except StorageError as error:
        message = (
            f"{stream} reads {other.name} at snapshot {snapshot_id}, which can't be tagged: {error}. If that snapshot "
            "expires, the stream fails at its next start"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return Pin(snapshot_id=snapshot_id)
    return Pin(snapshot_id=snapshot_id, tag=tag)


def _check(stream: str, other: DynamicTable, snapshot_id: int, tag: str) -> None:
    tagged = other.tags.load(tag).snapshot.id
    if tagged != snapshot_id:
        message = (
            f"{stream} reads {other.name} at snapshot {snapshot_id}, but tag {tag!r} is of snapshot {tagged}; such "
            "tags are the stream's own: delete it if the snapshot is still there"
        )
        raise InvalidInputError(message)
