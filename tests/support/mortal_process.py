"""Process that may crash at any operation on storage or log; others continue from the state it left.

storage = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=7))
table = reopened_in(storage, sound_table)      both stores now crash together at the seventh operation
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib import DynamicTable
from storage_lib.log_store.log_store import (
    EndOutcome,
    LogAppender,
    LogStore,
    LogTransaction,
    TransactionHandle,
    WrittenRange,
)
from tests.support.delegating_log import DelegatingLog
from tests.support.fake_environment import CountedNames

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.io.environment import Environment
    from tests.support.faulty_file_io import FaultyFileIO


def reopened_in(storage: FaultyFileIO, table: DynamicTable, *, names: str) -> DynamicTable:
    """Load the table as a new process whose storage and log operations all count towards the faults of ``storage``."""
    return _in_environment(storage, table, replace(table.environment, file_io=storage, new_name=CountedNames(names)))


def _in_environment(storage: FaultyFileIO, table: DynamicTable, environment: Environment) -> DynamicTable:
    return DynamicTable(
        name=table.name,
        uuid=table.uuid,
        location=table.location,
        address=None,
        environment=environment,
        schema=table.schema,
        options=table.options,
        log=None if table.log is None else MortalLog(table.log, storage),
        under=lambda newer: _in_environment(storage, table.refresh(schema_id=newer.id), environment),
    )


class MortalLog(DelegatingLog):
    """Delegates to ``delegate``; each operation visible to the log counts as one of ``storage``, and may crash."""

    def __init__(self, delegate: LogStore, storage: FaultyFileIO) -> None:
        super().__init__(delegate)
        self._storage = storage

    def begin(self, slot: int) -> LogTransaction:
        begun = self._storage._do("log.begin", str(slot), lambda: self.delegate.begin(slot))
        return MortalTransaction(begun, self._storage)

    def open_appender(self) -> LogAppender:
        return MortalAppender(self.delegate.open_appender(), self._storage)

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        # End them one by one: a crash in between leaves some ended and some open.
        return tuple(
            self._storage._do(
                "log.end",
                handle.transactional_id,
                lambda handle=handle: self.delegate.end(handle, commit=commit),  # type: ignore[misc]
            )
            for handle in handles
        )

    def is_committed(self, written: WrittenRange) -> bool:
        return self._storage._do("log.is_committed", "", lambda: self.delegate.is_committed(written))


class MortalTransaction:
    """Transaction of a ``MortalLog``."""

    def __init__(self, delegate: LogTransaction, storage: FaultyFileIO) -> None:
        self._delegate = delegate
        self._storage = storage

    @property
    def handle(self) -> TransactionHandle:
        return self._delegate.handle

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array, *, repairs: int | None = None) -> None:
        self._storage._do("log.write", str(bucket), lambda: self._delegate.write(bucket, rows, kinds, repairs=repairs))

    def flush(self) -> tuple[WrittenRange, ...]:
        return self._storage._do("log.flush", "", self._delegate.flush)

    def abort(self) -> None:
        self._storage._do("log.abort", "", self._delegate.abort)


class MortalAppender:
    """Appender of a ``MortalLog``."""

    def __init__(self, delegate: LogAppender, storage: FaultyFileIO) -> None:
        self._delegate = delegate
        self._storage = storage

    def write(self, bucket: int, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        self._storage._do("log.append", str(bucket), lambda: self._delegate.write(bucket, rows, kinds))

    def finish(self) -> tuple[WrittenRange, ...]:
        return self._storage._do("log.finish", "", self._delegate.finish)

    def give_up(self) -> None:
        self._delegate.give_up()
