"""External topic of changes. The reader declares its columns; Kafka determines its partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, LogOffsetsExpiredError, NotFoundError
from storage_lib.io.environment import SystemClock
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.codec.upsert_json import UpsertJson
from storage_lib.log_store.kafka.log_codecs import avro_codec, avro_upserts
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.catalog_options import is_of_catalog
from storage_lib.schema.options.known_options import is_known_option, unknown_option
from storage_lib.schema.options.table_options import (
    KAFKA_PREFIX,
    REGISTRY_PREFIX,
    OnCorrupt,
    StartupMode,
    canonical_key,
)
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from storage_lib.schema.types.variant import has_variants

if TYPE_CHECKING:
    from storage_lib.log_store.codec.log_codec import ChangeDecoder
    from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
    from storage_lib.log_store.log_store import LogStore
    from storage_lib.schema.table_schema import TableSchema

_ROWS_PER_TRIGGER_MAX = "maxrowspertrigger"
_FORMAT = "log.format"
_KEY_COLUMNS = "primary-key"
_SCAN = "log.scan"
_TIMESTAMP = "log.scan.timestamp-millis"
_ON_CORRUPT = "log.scan.on-corrupt"
START = "log.scan.offsets"
"""Option: JSON of partition -> start offset. Overrides ``log.scan``."""

START_ID = "log.scan.offsets-of"
"""Option: Kafka's id of the topic that the offsets of ``START`` belong to."""

COLUMN_TYPES = "column.types"
"""Option: JSON of column -> table type (``TIMESTAMP(3)``) if Spark's type does not determine the topic's encoding.

Debezium writes a timestamp as a bare number of milliseconds, microseconds or nanoseconds by its precision, and Spark
has only one precision.
"""

_OWN = frozenset(
    (
        "topic",
        "path",
        "source",
        _ROWS_PER_TRIGGER_MAX,
        _FORMAT,
        _KEY_COLUMNS,
        _SCAN,
        _TIMESTAMP,
        _ON_CORRUPT,
        START,
        START_ID,
        COLUMN_TYPES,
    )
)


class ExternalFormat(StrEnum):
    """Formats of external topics."""

    DEBEZIUM_JSON = "debezium-json"
    DEBEZIUM_JSON_SCHEMA = "debezium-json-schema"
    """Each record holds its schema, as Kafka Connect's JsonConverter writes it unless ``schemas.enable=false``."""

    DEBEZIUM_AVRO = "debezium-avro"
    UPSERT_KAFKA = "upsert-kafka"
    UPSERT_KAFKA_AVRO = "upsert-kafka-avro"

    @property
    def is_upsert(self) -> bool:
        """Whether a record holds the newest row of its key, and a deletion holds only the key."""
        return self in (ExternalFormat.UPSERT_KAFKA, ExternalFormat.UPSERT_KAFKA_AVRO)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTopic:
    """Location of a topic and how to read it; picklable. ``client_options`` may hold secrets.

    ``primary_keys`` are the key columns of an upsert-kafka topic that is read without a table. A new reader starts at
    ``start`` if given, otherwise where ``startup`` says.
    """

    name: str
    columns: pa.Schema
    client_options: Mapping[str, str] = field(repr=False)
    registry_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    source_name: str | None = None
    format: ExternalFormat = ExternalFormat.DEBEZIUM_JSON
    primary_keys: tuple[str, ...] = ()
    start: LogOffsets | None = None
    startup: StartupMode = StartupMode.FULL
    timestamp_millis: int | None = None
    rows_per_trigger_max: int | None = None
    on_corrupt: OnCorrupt = OnCorrupt.FAIL

    @classmethod
    def parse(cls, options: Mapping[str, str], columns: pa.Schema) -> ExternalTopic:
        """Parse Spark's options; ``kafka.*``, as in Spark's own Kafka source, is accepted for ``log.kafka.*``."""
        given = {_canonical(key): value for key, value in options.items()}
        name = given.get("topic") or given.get("path")
        _refuse_unknown(given, name)
        if not name:
            message = "a changelog read needs .option('topic', <the topic>)"
            raise InvalidInputError(message)
        try:
            start = None if START not in given else LogOffsets.from_json(given[START], given.get(START_ID))
            startup = StartupMode(given.get(_SCAN, StartupMode.FULL))
            spelled = ExternalFormat(given.get(_FORMAT, ExternalFormat.DEBEZIUM_JSON))
            on_corrupt = OnCorrupt(given.get(_ON_CORRUPT, OnCorrupt.FAIL))
            timestamp = None if _TIMESTAMP not in given else int(given[_TIMESTAMP])
            rows_max = None if _ROWS_PER_TRIGGER_MAX not in given else int(given[_ROWS_PER_TRIGGER_MAX])
        except (ValueError, AttributeError) as error:
            message = (
                f"topic {name}: {error}; log.scan is one of {', '.join(StartupMode)}, {_FORMAT} one of "
                f"{', '.join(ExternalFormat)}, {_ON_CORRUPT} one of {', '.join(OnCorrupt)}, the other two are whole "
                "numbers"
            )
            raise InvalidInputError(message) from error
        if startup is StartupMode.FROM_TIMESTAMP and timestamp is None:
            message = f"topic {name}: log.scan=from-timestamp needs {_TIMESTAMP} (epoch milliseconds)"
            raise InvalidInputError(message)
        if rows_max is not None and rows_max < 1:
            message = f"topic {name}: maxRowsPerTrigger = {rows_max}; use 1 or more, or leave it out for no limit"
            raise InvalidInputError(message)
        client = {key.removeprefix(KAFKA_PREFIX): value for key, value in given.items() if key.startswith(KAFKA_PREFIX)}
        typed = _typed(name, columns, given.get(COLUMN_TYPES))
        _refuse_variants(name, typed)
        return cls(
            name=name,
            columns=typed,
            client_options=client,
            registry_options={
                key.removeprefix(REGISTRY_PREFIX): value
                for key, value in given.items()
                if key.startswith(REGISTRY_PREFIX)
            },
            source_name=given.get("source"),
            format=spelled,
            primary_keys=tuple(name.strip() for name in given.get(_KEY_COLUMNS, "").split(",") if name.strip()),
            start=start,
            startup=startup,
            timestamp_millis=timestamp,
            rows_per_trigger_max=rows_max,
            on_corrupt=on_corrupt,
        )

    def log(self, table: TableSchema | None = None) -> KafkaLogStore:
        """Return the topic as a log with one bucket per partition. Connections are shared within the process.

        Its columns and types are those of ``table``, or the declared ones if ``table`` is None.

        Raises ``NotFoundError`` if the topic does not exist, since other programs have to create it, and
        ``InvalidInputError`` without Kafka's client.
        """
        with importing_for(f"topic {self.name!r} of Kafka", InvalidInputError):
            from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
            from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
            from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore

        clock = SystemClock()
        settings = KafkaLogSettings(
            topic=self.name, table_uuid="", client_options=self.client_options, on_corrupt=self.on_corrupt
        )
        cluster = KafkaCluster.shared(settings.client_config, settings.limit_ms)
        try:
            partitions = cluster.leaders(self.name, cluster.retries(clock, f"find topic {self.name!r}"))
        except NotFoundError as error:
            message = (
                f"Kafka at {settings.servers} has no topic {self.name!r} to read from; check its name and the servers, "
                "or create it: the program that writes the changes has to run first"
            )
            raise NotFoundError(message) from error
        buckets = {"bucket": str(len(partitions))}
        if table is None:
            keys = self.primary_keys if self.format.is_upsert else ()
            schema = new_table_schema(self.columns, primary_keys=keys, options=buckets, time_millis=0)
        else:
            # A deletion may have only key columns; the table checks NOT NULL for other rows.
            fields = tuple(
                each if each.name in table.primary_keys else replace(each, type=each.type.with_nullable(True))
                for each in table.fields
            )
            schema = replace(table, fields=fields, options=buckets, partition_keys=())
        return KafkaLogStore(schema, settings, clock, self._decoder(schema))

    def _decoder(self, schema: TableSchema) -> ChangeDecoder:
        if self.format is ExternalFormat.UPSERT_KAFKA:
            return UpsertJson(schema)
        if self.format is ExternalFormat.UPSERT_KAFKA_AVRO:
            return avro_upserts(schema, self.name, self.registry_options)
        if self.format is ExternalFormat.DEBEZIUM_JSON_SCHEMA:
            return DebeziumJson(schema, with_update_before=False, has_schema=True)
        if self.format is ExternalFormat.DEBEZIUM_AVRO:
            return avro_codec(schema, self.name, self.registry_options)
        return DebeziumJson(schema, with_update_before=False)

    @property
    def source(self) -> str:
        """Name under which a table that ingests this topic stores its offsets."""
        return self.source_name or self.name

    def refuse_recreated(self, reached: LogOffsets, log_id: str | None) -> None:
        """Raise ``LogOffsetsExpiredError`` if ``reached`` belongs to a deleted topic rather than to ``log_id``."""
        if not reached.is_of(log_id):
            message = (
                f"topic {self.name!r} was deleted and recreated after source {self.source!r} was read up to "
                f"{reached}: records may have been lost. ingest(skip_expired=True) continues at "
                "the beginning of the new one, and so does a stream with a new checkpoint after it, or with option "
                "source=<another name>"
            )
            raise LogOffsetsExpiredError(message)

    def first_offsets(self, log: LogStore) -> LogOffsets:
        """Return the offsets at which a new reader starts."""
        if self.start is not None:
            log_id = log.log_id()
            self.refuse_recreated(self.start, log_id)
            return self.start.in_log(log_id)
        if self.startup is StartupMode.LATEST:
            return log.latest_offsets()
        if self.startup is StartupMode.FROM_TIMESTAMP:
            return log.offsets_at(self.timestamp_millis or 0)
        return log.earliest_offsets()


def _refuse_variants(topic: str, columns: pa.Schema) -> None:
    for column in columns:
        if has_variants(column.type):
            message = (
                f"topic {topic}: column {column.name!r} is a VARIANT, which records of a topic can't represent; "
                "read it into a STRING column, and make variants of that in Spark (parse_json)"
            )
            raise InvalidInputError(message)


def _typed(topic: str, columns: pa.Schema, types: str | None) -> pa.Schema:
    """Replace Spark's types of columns by those of ``COLUMN_TYPES``."""
    try:
        named = {} if types is None else dict(json.loads(types))
    except (ValueError, TypeError) as error:
        message = f"topic {topic}: option {COLUMN_TYPES} is {types!r}; it has to be JSON of column -> type"
        raise InvalidInputError(message) from error
    unknown = [name for name in named if name not in columns.names]
    if unknown:
        message = (
            f"topic {topic}: option {COLUMN_TYPES} names {unknown[0]!r}, but the columns are {', '.join(columns.names)}"
        )
        raise InvalidInputError(message)
    return pa.schema(
        [each.with_type(parse_type(str(named[each.name])).arrow) if each.name in named else each for each in columns]
    )


def _refuse_unknown(given: Mapping[str, str], topic: str | None) -> None:
    """Refuse unknown options; those of the connection are allowed: of its catalog, its store and new tables."""
    for key in given:
        if key not in _OWN and not (
            is_known_option(key) or is_of_catalog(key) or key.startswith(STORE_OPTION_PREFIXES)
        ):
            raise unknown_option(key, f"topic {topic}", _OWN)


def _canonical(key: str) -> str:
    lower = key.lower()
    return canonical_key(f"log.{lower}" if lower.startswith("kafka.") else lower)
