"""Splits of the read between two positions of a stream: frozen and picklable, one type per origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from storage_lib.file_store.split import Split
from storage_lib.table.protocol.change_split import ChangeSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSplit:
    """Rows of the snapshot that the stream starts with."""

    split: Split


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedSplit:
    """Rows that a later snapshot added, read from its files.

    ``retracts``: if keys may move between partitions, True selects only the snapshot's retractions, and False only its
    additions, which are read after all retractions. None: all changes.
    """

    split: Split
    retracts: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceSplit:
    """Changes of a later snapshot that are computed by comparing files; ``retracts`` as ``AddedSplit``."""

    split: ChangeSplit
    retracts: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSplit:
    """Committed records of one bucket of the log from ``start`` up to, not including, ``end``.

    Records that repair snapshot ``repaired_snapshot_id`` or an older one are skipped. ``began_empty`` is that of
    ``StreamPosition``.
    """

    bucket: int
    start: int
    end: int
    repaired_snapshot_id: int = 0
    began_empty: bool = False


ChangedSplit: TypeAlias = AddedSplit | DifferenceSplit
StreamSplit: TypeAlias = SnapshotSplit | ChangedSplit | LogSplit
