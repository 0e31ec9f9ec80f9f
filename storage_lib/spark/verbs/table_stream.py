"""A running stream into a table: Spark's query with the work that this library does in parallel with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage_lib.spark.tasks.driver_lease import give_up
from storage_lib.spark.types.spark_errors import storage_error_in

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from storage_lib.spark.compaction.stream_compaction import StreamCompaction
    from storage_lib.spark.data_source.stream_tiering import StreamTiering
    from storage_lib.table.dynamic_table import DynamicTable


class TableStream:
    """A running stream into a table, with all attributes of pyspark's ``StreamingQuery``."""

    def __init__(
        self,
        query: StreamingQuery,
        table: DynamicTable,
        commit_user: str,
        compaction: StreamCompaction | None,
        tiering: StreamTiering | None = None,
    ) -> None:
        self.query = query
        self.commit_user = commit_user
        self.compaction = compaction
        self.tiering = tiering
        self._table = table
        for work in (compaction, tiering):
            if work is not None:
                work.start(until=lambda: not query.isActive)

    def __getattr__(self, name: str) -> Any:
        """Delegate to the query: ``id``, ``isActive``, ``lastProgress``, ``processAllAvailable()``, …"""
        return getattr(self.query, name)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802  Spark's name
        """Wait until the stream ends; raise its error, as an error of this library if it was one."""
        try:
            ended = self.query.awaitTermination() if timeout is None else self.query.awaitTermination(timeout)
        except Exception as error:
            ours = storage_error_in(str(error))
            if ours is None:
                raise
            raise ours from error
        if not self.query.isActive:
            self._stop_background()
        return ended

    def stop(self) -> None:
        """Stop the stream, its compaction and tiering, and release the lease of an interrupted micro-batch."""
        self.query.stop()
        self._stop_background()
        give_up(self._table, self.commit_user, [])

    def _stop_background(self) -> None:
        for work in (self.tiering, self.compaction):
            if work is not None:
                work.stop()

    def error(self) -> Exception | None:
        """Return the error that ended the stream, as an error of this library if it was one; None without an error."""
        failure = self.query.exception()
        return None if failure is None else storage_error_in(str(failure)) or failure
