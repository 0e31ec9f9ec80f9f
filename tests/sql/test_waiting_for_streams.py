"""State that a streaming INSERT with ``table.dml-sync`` leaves if its wait ends early."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from storage_lib.sql.run.run_insert_stream import wait_for


class EndlessStream:
    """A stream whose wait ends with ``error``."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self.is_stopped = False

    def awaitTermination(self) -> None:  # noqa: N802  Spark's name
        raise self._error

    def stop(self) -> None:
        self.is_stopped = True


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("broken")], ids=lambda each: type(each).__name__)
def test_a_stream_whose_wait_is_interrupted_or_that_fails_is_stopped(error: BaseException) -> None:
    stream = EndlessStream(error)

    with pytest.raises(type(error)):
        wait_for(stream)

    assert stream.is_stopped
