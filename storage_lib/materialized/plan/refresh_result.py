"""Outcome of one refresh of a materialized table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class RefreshWork(StrEnum):
    """Work of a refresh. NONE: no rows were computed."""

    NONE = "none"
    INCREMENTAL = "incremental"
    FULL = "full"


class RefreshEngine(StrEnum):
    """Who computed the rows of a refresh: Spark's jobs, or DuckDB in the process that refreshes."""

    SPARK = "spark"
    DUCKDB = "duckdb"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """Work of one refresh, its reason, and the number of rows that it read and wrote.

    ``rows_read`` counts, by source, the changed rows that an incremental refresh read, or the stored rows that a full
    one read (before versions of one key are merged). ``rows_written`` counts the rows that the commit added to the
    table's files, deletions included. ``snapshot_id`` is the snapshot that the refresh created; None if it created
    none. ``engine`` computed the rows; None if there were none to compute. ``positions`` are the snapshots of the
    sources, by name, whose answer the table now holds (versions of Delta plus one, as 0 is the empty table).
    ``refreshed_first`` are the refreshes of tables with TARGET_LAG = DOWNSTREAM that it reads, by name, without those
    that had nothing to do.
    """

    mode: RefreshWork
    reason: str
    rows_read: Mapping[str, int] = field(default_factory=dict)
    rows_written: int = 0
    seconds: float = 0.0
    snapshot_id: int | None = None
    engine: RefreshEngine | None = None
    positions: Mapping[str, int] = field(default_factory=dict)
    refreshed_first: Mapping[str, RefreshResult] = field(default_factory=dict)
