"""Interface of a measured table format: one Spark session, tables with key ``id`` below one directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    ("id", "BIGINT NOT NULL"),
    ("dt", "STRING NOT NULL"),
    ("name", "STRING"),
    ("amount", "DECIMAL(12,2)"),
    ("score", "DOUBLE"),
    ("ts", "TIMESTAMP_NTZ"),
)
"""Name and Spark's type of each column."""
COLUMNS_SQL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
BUCKETS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrder:
    """Start of a format's session: a directory for its tables, settings, and the paths of its jars."""

    directory: Path
    master: str
    conf: dict[str, str] = field(default_factory=dict)
    jars: str = ""

    def plain_session(self, **more: str) -> SparkSession:
        """Start Spark without this library."""
        from pyspark.sql import SparkSession  # noqa: PLC0415  timed as part of the session's start

        builder = SparkSession.builder.appName("spark benchmark").master(self.master)
        for key, value in {**self.conf, **({"spark.jars": self.jars} if self.jars else {}), **more}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


class TableFormat(Protocol):
    """Operations are complete when they return: another session would see their result."""

    @property
    def spark(self) -> SparkSession:
        """The session, which the constructor started."""

    def create(self, table: str) -> None:
        """Create an empty table."""

    def load(self, table: str, rows: DataFrame) -> None:
        """Write rows with distinct keys into an empty table, in one commit."""

    def upsert(self, table: str, rows: DataFrame) -> None:
        """Upsert rows with distinct keys, in one commit, without a compaction."""

    def compact(self, table: str) -> None:
        """Merge all files into as few as possible."""

    def query(self, text: str, table: str, *, through_view: bool) -> DataFrame:
        """Return the query's result, not computed yet; ``{table}`` in ``text`` stands for the table.

        ``through_view`` reads through a temporary view of the format's data frame instead of the format's SQL.
        """
