"""A streaming query that starts again where one of Spark's Python processes did not start in time.

    query ─▶ a process is late ─▶ Spark ends the query ─▶ pause ─▶ the query starts again, from its checkpoint ─▶ …

Spark gives a Python process a fixed time to start, and ends the whole query where a busy machine needs longer. The next
start repeats the micro-batch under the same number, so a table that has its commit already does not commit it again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread
from pyspark.errors import PySparkException

from storage_lib.spark.types.spark_errors import is_late_start

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LOGGER = logging.getLogger(__name__)
_PAUSES = (1.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before the first, second, ... start in a row without a finished micro-batch between; then the query ends."""


class RepeatedQuery:
    """The query that ``start`` returns, and the later ones that take its place.

    ``release`` runs before each later start, to undo what the interrupted micro-batch has left. ``name`` is for
    messages.
    """

    def __init__(
        self,
        start: Callable[[], StreamingQuery],
        *,
        name: str,
        release: Callable[[], None],
        pauses: Sequence[float] = _PAUSES,
    ) -> None:
        self._start = start
        self._name = name
        self._release = release
        self._pauses = pauses
        self._stopping = threading.Event()
        # Guards what follows; notified for each new query and at the end.
        self._changed = threading.Condition()
        self._start_count = 1
        self._failure: Exception | None = None
        self._is_over = False
        self._query = start()
        # It takes over what Spark keeps for this thread, such as the description of jobs.
        self._thread = InheritableThread(target=self._repeat, name=f"stream-{name}", daemon=True)
        self._thread.start()

    @property
    def current(self) -> StreamingQuery:
        """The query that runs, or was the last one."""
        with self._changed:
            return self._query

    @property
    def start_count(self) -> int:
        """How often the query was started."""
        with self._changed:
            return self._start_count

    @property
    def is_active(self) -> bool:
        """Whether the query runs or will start again."""
        with self._changed:
            return not self._is_over

    def wait_for_end(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the query ends; return whether it has, and raise its error."""
        with self._changed:
            is_over = self._changed.wait_for(lambda: self._is_over, timeout_seconds)
            failure = self._failure
        if is_over and failure is not None:
            raise failure
        if is_over:
            self.current.awaitTermination()
        return is_over

    def failure(self) -> Exception | None:
        """Return the error that ended the query; None without an error, and while it runs or will start again."""
        with self._changed:
            return (self._failure or self._query.exception()) if self._is_over else None

    def process_all_available(self) -> None:
        """Wait until all data that is available now is processed, as Spark's ``processAllAvailable``."""
        while True:
            query = self.current
            try:
                query.processAllAvailable()
            except (PySparkException, Py4JError) as error:
                if not is_late_start(str(error)) or not self._is_replaced(query):
                    raise
            else:
                return

    def stop(self) -> None:
        """Stop the query, and return when it has ended; it does not start again."""
        self._stopping.set()
        self.current.stop()
        self._thread.join()

    def _is_replaced(self, query: StreamingQuery) -> bool:
        """Wait until the query, which has failed, is replaced or will not be; return whether it is."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._query is not query)
            return self._query is not query

    def _repeat(self) -> None:
        failure, in_a_row = None, 0
        try:
            while self._ends_late(query := self.current):
                # One that has finished a micro-batch shows that processes can start in time.
                in_a_row = 1 if query.lastProgress is not None else in_a_row + 1
                if in_a_row > len(self._pauses) or not self._starts_again(self._pauses[in_a_row - 1]):
                    break
        except Exception as error:  # noqa: BLE001  for the threads that wait for the end
            failure = error
        with self._changed:
            self._failure = failure
            self._is_over = True
            self._changed.notify_all()

    @staticmethod
    def _ends_late(query: StreamingQuery) -> bool:
        """Wait until the query ends; return whether a Python process that started too late has ended it."""
        try:
            query.awaitTermination()
        except PySparkException as error:
            return is_late_start(str(error))
        return False

    def _starts_again(self, pause_seconds: float) -> bool:
        """Start the query again after a pause; return False if it is to be stopped."""
        _LOGGER.warning(
            "%s: a Python process of Spark did not start in time, because the machine is overloaded; the stream "
            "continues from its checkpoint in %g s",
            self._name,
            pause_seconds,
        )
        if self._stopping.wait(pause_seconds):
            return False
        self._release()
        query = self._start()
        with self._changed:
            self._query = query
            self._start_count += 1
            self._changed.notify_all()
        if self._stopping.is_set():
            query.stop()
        return True
