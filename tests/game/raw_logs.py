"""Raw records of a table's log, without the codecs of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from storage_lib.log_store.memory import memory_log_store
from storage_lib.log_store.memory.memory_log import TransactionState


@dataclass
class RawMemoryLog:
    """The log in memory. Reads up to the first open transaction, and leaves out records of aborted ones."""

    name: str
    positions: Counter[int] = field(default_factory=Counter)

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        log = memory_log_store._LOGS[self.name]
        for number, bucket in enumerate(log.buckets):
            stop = log.stable_offset(number)
            for stretch in bucket.stretches:
                columns = stretch.columns
                first, last = columns.offsets[0], columns.offsets[-1]
                if stretch.transaction.state is TransactionState.COMMITTED and self.positions[number] <= last < stop:
                    assert first >= self.positions[number]
                    yield from zip(columns.keys.to_pylist(), columns.values.to_pylist(), strict=True)
            self.positions[number] = stop
