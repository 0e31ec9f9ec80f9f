"""Replays flights as the changes an airport's information system would emit, in event order, into a Kafka topic.

    scheduled   insert    hours before departure, without the actual times
    departed    update    with the departure time and delay
    landed      update    the whole row
    cancelled   delete    if no aircraft had been assigned; otherwise the scheduled row is kept

The topic holds debezium-json as Debezium's own connectors write it; one record key per flight, so that the changes of a
flight stay in order within their Kafka partition.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.options.table_options import ChangelogMode

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

__all__ = ["Replay", "changes", "final_rows"]

_KNOWN_WHEN_DEPARTED = ["dep_time", "dep_delay"]
_KNOWN_WHEN_LANDED = ["arr_time", "arr_delay", "air_time"]
_SCHEDULED, _DEPARTED, _LANDED, _CANCELLED = range(4)
_MINUTES_AHEAD = 360
_TAXI_MINUTES = 20


def changes(flights: pa.Table, first: date, last: date, schema: TableSchema) -> pl.DataFrame:
    """Return every change of the flights of the days ``first`` to ``last`` (local), in event order.

    Columns: those of the table, ``event_minute`` (minutes since the epoch, local) and ``_row_kind`` (int8 code).
    """
    days = _of_days(flights, first, last)
    scheduled_minute = (
        pl.col("flight_date").cast(pl.Int32) * 1440
        + pl.col("sched_dep_time") // 100 * 60
        + pl.col("sched_dep_time") % 100
    )
    departed_minute = scheduled_minute + pl.col("dep_delay")
    landed_minute = departed_minute + pl.col("air_time").fill_null(60) + _TAXI_MINUTES
    unknown_yet = [pl.lit(None).alias(name) for name in (*_KNOWN_WHEN_DEPARTED, *_KNOWN_WHEN_LANDED)]
    has_left = pl.col("dep_time").is_not_null()
    events = [
        _events(days, _SCHEDULED, scheduled_minute - _MINUTES_AHEAD, kind=0).with_columns(*unknown_yet),
        _events(days.filter(has_left), _DEPARTED, departed_minute, kind=2).with_columns(
            *(pl.lit(None).alias(name) for name in _KNOWN_WHEN_LANDED)
        ),
        _events(days.filter(has_left), _LANDED, landed_minute, kind=2),
        _events(days.filter(~has_left & pl.col("tailnum").is_null()), _CANCELLED, scheduled_minute, kind=3),
    ]
    names = [field.name for field in schema.fields]
    everything = pl.concat(events, how="vertical_relaxed").sort("event_minute", "stage", maintain_order=True)
    missing = [pl.lit(None).alias(name) for name in names if name not in everything.columns]
    return everything.with_columns(*missing).select(*names, "event_minute", "_row_kind")


def final_rows(flights: pa.Table, first: date, last: date) -> pl.DataFrame:
    """Return the rows that remain after all changes have been applied."""
    days = _of_days(flights, first, last)
    return days.filter(pl.col("dep_time").is_not_null() | pl.col("tailnum").is_not_null())


def _of_days(flights: pa.Table, first: date, last: date) -> pl.DataFrame:
    frame = pl.DataFrame(flights)
    return frame.filter(pl.col("flight_date").is_between(first, last))


def _events(flights: pl.DataFrame, stage: int, minute: pl.Expr, *, kind: int) -> pl.DataFrame:
    return flights.with_columns(
        minute.cast(pl.Int64).alias("event_minute"),
        pl.lit(stage, pl.Int8).alias("stage"),
        pl.lit(kind, pl.Int8).alias("_row_kind"),
    )


class Replay:
    """Writes changes into one topic, which it creates."""

    def __init__(self, bootstrap_servers: str, topic: str, schema: TableSchema, *, partitions: int = 2) -> None:
        self._topic = topic
        self._schema = schema
        self._codec = DebeziumJson.for_table(schema, ChangelogMode.UPSERT)
        admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
        try:
            admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])
        finally:
            admin.close()
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=5, acks="all")

    def send(self, events: pl.DataFrame, *, per_second: int | None = None) -> Iterator[tuple[int, float]]:
        """Send the events in order, at most ``per_second``; yields (events sent so far, wall-clock seconds)."""
        keys, values = self._encoded(events)
        step = len(keys) if per_second is None else max(1, per_second // 20)
        started = time.monotonic()
        for start in range(0, len(keys), step):
            if per_second is not None:
                time.sleep(max(0.0, started + start / per_second - time.monotonic()))
            sent_at = time.time()
            for key, value in zip(keys[start : start + step], values[start : start + step], strict=True):
                self._producer.send(self._topic, key=key, value=value)
            yield min(start + step, len(keys)), sent_at
        self._producer.flush()

    def close(self) -> None:
        """Flush and disconnect."""
        self._producer.close()

    def _encoded(self, events: pl.DataFrame) -> tuple[list[bytes], list[bytes]]:
        arrow = self._schema.arrow_schema
        table = (
            events.select(arrow.names)
            .to_arrow()
            .cast(pa.schema([field.with_nullable(nullable=True) for field in arrow]))
        )
        kinds = events["_row_kind"].to_arrow()
        keys: list[bytes] = []
        values: list[bytes] = []
        for rows in table.cast(arrow).combine_chunks().to_batches():
            for encoded in self._codec.encode(rows, kinds):
                keys += encoded.keys.to_pylist()
                values += encoded.values.to_pylist()
        return keys, values
