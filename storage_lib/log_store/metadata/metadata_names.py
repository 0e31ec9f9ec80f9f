"""Metadata of records that columns can be filled with, by the names of option ``source.metadata``.

    topic, partition, offset, timestamp        of the record in Kafka
    value.op, value.ts_ms, ts_us, ts_ns        of Debezium's envelope
    value.source.lsn, file, pos, scn, ...      of the envelope's ``source``: the change's place in the database

Flink's names of the same values are understood. A flattened record has those that ``add.fields`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.log_store.conversion.captured_value_type import INT64, TEXT, ValueType

_SOURCE_NUMBERS = ("lsn", "ts_ms", "ts_us", "ts_ns", "txId", "pos", "row", "event_serial_no")
_SOURCE_TEXTS = (
    *("file", "gtid", "commit_lsn", "change_lsn", "scn", "commit_scn", "sequence"),
    *("db", "schema", "table", "snapshot", "name", "connector"),
)
_DIGITS = ("scn", "commit_scn")
"""Numbers that connectors write as text."""
_UNITS = {"timestamp": "ms", "ts_ms": "ms", "ts_us": "us", "ts_ns": "ns"}
_SOURCE = "source."
_VALUE = "value."
_ADDED = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """``path`` leads to it in an envelope, such as ``source.lsn``; None if it is Kafka's own.

    ``written`` is its type where no schema says so. ``unit`` (ms, us, ns) is that of a time since 1970.
    """

    name: str
    path: str | None
    written: ValueType

    @property
    def key(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    @property
    def unit(self) -> str | None:
        """Unit of a number that is a time; None for other values."""
        return _UNITS.get(self.key)

    @property
    def is_digits(self) -> bool:
        """Whether it is a number that is written as text: the order of the text is another one."""
        return self.key in _DIGITS

    def paths(self, *, is_flattened: bool) -> tuple[str, ...]:
        """Return where records of a format may have it; the first of these that a record has counts."""
        if self.path is None:
            return ()
        if not is_flattened:
            return (self.path,)
        if not self.path.startswith(_SOURCE):
            return (f"{_ADDED}{self.path}",)
        # Without "source." before it, a name of a time in add.fields is that of the envelope.
        alone = () if self.key in _UNITS else (f"{_ADDED}{self.key}",)
        return (f"{_ADDED}source_{self.key}", *alone)


def _of_kafka(name: str, written: ValueType) -> Metadata:
    return Metadata(name=name, path=None, written=written)


def _of_envelope(path: str, written: ValueType) -> Metadata:
    return Metadata(name=f"{_VALUE}{path}", path=path, written=written)


TOPIC = _of_kafka("topic", TEXT)
PARTITION = _of_kafka("partition", INT64)
OFFSET = _of_kafka("offset", INT64)
TIMESTAMP = _of_kafka("timestamp", INT64)
KAFKA_METADATA = (TOPIC, PARTITION, OFFSET, TIMESTAMP)
METADATA: Mapping[str, Metadata] = {
    each.name: each
    for each in (
        *KAFKA_METADATA,
        _of_envelope("op", TEXT),
        *(_of_envelope(key, INT64) for key in ("ts_ms", "ts_us", "ts_ns")),
        *(_of_envelope(f"{_SOURCE}{key}", INT64) for key in _SOURCE_NUMBERS),
        *(_of_envelope(f"{_SOURCE}{key}", TEXT) for key in _SOURCE_TEXTS),
    )
}
FLINK_NAMES: Mapping[str, str] = {
    "value.ingestion-timestamp": "value.ts_ms",
    "value.source.timestamp": "value.source.ts_ms",
    "value.source.database": "value.source.db",
}
"""Flink's names of values that Debezium calls otherwise."""
