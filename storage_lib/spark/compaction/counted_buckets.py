"""Progress of a Spark job on the driver: each task adds to an accumulator when it succeeds."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.accumulators import AccumulatorParam


class CountedBuckets(AccumulatorParam[int]):
    """Calls ``advance`` with the number of buckets of each task that has succeeded, in a thread of pyspark.

    An exception of ``advance`` would end that thread and block all jobs of the session. It is stored for ``check``
    instead, and ``advance`` is not called again. Call ``stop`` when the job has ended. A copy pickled for a task only
    adds.
    """

    def __init__(self, advance: Callable[[int], None] | None = None) -> None:
        self._advance = advance
        self._error: BaseException | None = None

    def __reduce__(self) -> tuple[type[CountedBuckets], tuple[()]]:
        return type(self), ()

    def zero(self, value: int) -> int:  # noqa: ARG002  as pyspark calls it
        """Return the initial count."""
        return 0

    def addInPlace(self, value1: int, value2: int) -> int:  # noqa: N802  pyspark's name
        """Add the buckets of a task, ``value2``."""
        if self._advance is not None:
            try:
                self._advance(value2)
            except BaseException as error:  # noqa: BLE001  whatever it is, it belongs to the caller's thread
                self._error, self._advance = error, None
        return value1 + value2

    def stop(self) -> None:
        """Drop ``advance``: tasks of a failed job may still run, and pyspark never releases an accumulator."""
        self._advance = None

    def check(self) -> None:
        """Raise the exception of ``advance``, if any."""
        if self._error is not None:
            raise self._error
