"""A running stream into a table: Spark's query with the work that this library does in parallel with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from storage_lib.errors import UnavailableError
from storage_lib.spark.tasks.driver_lease import give_up
from storage_lib.spark.types.spark_errors import is_late_start, storage_error_in
from storage_lib.spark.verbs.repeated_query import RepeatedQuery

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from storage_lib.spark.compaction.stream_compaction import StreamCompaction
    from storage_lib.spark.data_source.stream_tiering import StreamTiering
    from storage_lib.spark.stream.applied_topic import AppliedTopic
    from storage_lib.table.dynamic_table import DynamicTable


class TableStream:
    """A running stream into a table, with all attributes of pyspark's ``StreamingQuery``.

    ``start`` starts Spark's query. Where the machine is too busy for the start of a Python process, it is called again,
    a few times, before the stream ends (``RepeatedQuery``). ``applied`` is the topic whose records the driver applies;
    None for a stream of rows.
    """

    def __init__(
        self,
        start: Callable[[], StreamingQuery],
        table: DynamicTable,
        commit_user: str,
        compaction: StreamCompaction | None,
        tiering: StreamTiering | None = None,
        *,
        applied: AppliedTopic | None = None,
    ) -> None:
        self.commit_user = commit_user
        self.compaction = compaction
        self.tiering = tiering
        self.applied = applied
        self._table = table
        self._queries = RepeatedQuery(start, name=f"table {table.name}", release=self._release)
        for work in (compaction, tiering):
            if work is not None:
                work.start(until=lambda: not self.isActive)

    def __getattr__(self, name: str) -> Any:
        """Delegate to the query: ``id``, ``status``, ``lastProgress``, …"""
        return getattr(self.query, name)

    @property
    def query(self) -> StreamingQuery:
        """Spark's query; another one once it had to be started again."""
        return self._queries.current

    @property
    def isActive(self) -> bool:  # noqa: N802  Spark's name
        """Whether the stream runs, or will start again."""
        return self._queries.is_active

    def processAllAvailable(self) -> None:  # noqa: N802  Spark's name
        """Wait until all data that is available now is in the table."""
        self._queries.process_all_available()

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802  Spark's name
        """Wait until the stream ends; raise its error, as an error of this library if it was one."""
        try:
            ended = self._queries.wait_for_end(timeout)
        except Exception as error:
            ours = self._told(error)
            if ours is error:
                raise
            raise ours from error
        if ended:
            self._stop_background()
        return None if timeout is None else ended

    def stop(self) -> None:
        """Stop the stream, its compaction and tiering, and release the lease of an interrupted micro-batch."""
        self._queries.stop()
        self._stop_background()
        self._release()

    def _stop_background(self) -> None:
        for work in (self.applied, self.tiering, self.compaction):
            if work is not None:
                work.stop()

    def _release(self) -> None:
        give_up(self._table, self.commit_user, [])

    def error(self) -> Exception | None:
        """Return the error that ended the stream, as an error of this library if it was one; None without an error."""
        failure = self._queries.failure()
        return None if failure is None else self._told(failure)

    def _told(self, failure: Exception) -> Exception:
        if is_late_start(str(failure)):
            return UnavailableError(f"{storage_error_in(str(failure))}. Starts so far: {self._queries.start_count}")
        return storage_error_in(str(failure)) or failure
