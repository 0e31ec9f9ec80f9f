"""External topic of changes. The reader declares its columns; Kafka determines its partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, LogOffsetsExpiredError, NotFoundError
from storage_lib.io.environment import SystemClock
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.log_store.capture.avro_record_decoder import AvroRecordDecoder
from storage_lib.log_store.capture.captured_table import CapturedTable
from storage_lib.log_store.capture.json_record_decoder import JsonRecordDecoder
from storage_lib.log_store.capture.upsert_record_decoder import UpsertRecordDecoder
from storage_lib.log_store.external.captured_topic import CapturedTopic
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.external.key_columns import key_columns
from storage_lib.log_store.external.source_metadata import metadata_columns
from storage_lib.log_store.external.source_settings import ON_CORRUPT, SourceSettings
from storage_lib.log_store.kafka.log_codecs import registry_of
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.catalog_options import is_of_catalog
from storage_lib.schema.options.known_options import is_known_option, unknown_option
from storage_lib.schema.options.source_options import SOURCE_OPTIONS
from storage_lib.schema.options.table_options import (
    KAFKA_PREFIX,
    REGISTRY_PREFIX,
    MergeEngine,
    StartupMode,
    TableOptions,
    canonical_key,
)
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.type_spelling import parse_type
from storage_lib.schema.types.variant import has_variants

if TYPE_CHECKING:
    from storage_lib.log_store.capture.capture_decoder import CaptureDecoder
    from storage_lib.log_store.codec.record_log import RecordLog
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
    from storage_lib.schema.table_schema import TableSchema

_ROWS_PER_TRIGGER_MAX = "maxrowspertrigger"
_FORMAT = "log.format"
_KEY_COLUMNS = "primary-key"
_SEQUENCE = "sequence.field"
_SCAN = "log.scan"
_TIMESTAMP = "log.scan.timestamp-millis"
_ANY_BUCKET = {"bucket": "1"}
START = "log.scan.offsets"
"""Option: JSON of partition -> start offset. Overrides ``log.scan``."""

START_ID = "log.scan.offsets-of"
"""Option: Kafka's id of the topic that the offsets of ``START`` belong to."""

COLUMN_TYPES = "column.types"
"""Option: JSON of column -> table type (``TIMESTAMP(3)``) if Spark's type does not determine the topic's encoding.

Debezium writes a timestamp as a bare number of milliseconds, microseconds or nanoseconds by its precision, and Spark
has only one precision.
"""

TABLE_ENGINE = "table.merge-engine"
"""Option: merge engine of the table that a stream writes, which decides whether it needs old rows."""

APPLIED_TO = "table.uuid"
"""Option: uuid of the table to which a stream of Spark applies the records, as ``ingest`` does."""

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
        ON_CORRUPT,
        *SOURCE_OPTIONS,
        START,
        START_ID,
        COLUMN_TYPES,
        TABLE_ENGINE,
        APPLIED_TO,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalTopic:
    """Location of a topic and how to read it; picklable. ``client_options`` may hold secrets.

    ``primary_keys`` and ``merge_engine`` are those of the table that will have the rows, for a read without a table;
    None if it is unknown. ``sequence_fields`` are its columns of that option, as far as they were given: a record needs
    their metadata. A new reader starts at ``start`` if given, otherwise where ``startup`` says. ``applied_to``:
    uuid of the table to which a stream applies the records; None: the stream has them as rows.
    """

    name: str
    columns: pa.Schema
    client_options: Mapping[str, str] = field(repr=False)
    registry_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    source_name: str | None = None
    format: ExternalFormat = ExternalFormat.DEBEZIUM_JSON
    primary_keys: tuple[str, ...] = ()
    merge_engine: MergeEngine | None = None
    sequence_fields: tuple[str, ...] = ()
    start: LogOffsets | None = None
    startup: StartupMode = StartupMode.FULL
    timestamp_millis: int | None = None
    rows_per_trigger_max: int | None = None
    applied_to: str | None = None
    settings: SourceSettings = field(default_factory=SourceSettings)

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
            engine = None if TABLE_ENGINE not in given else MergeEngine(given[TABLE_ENGINE])
            timestamp = None if _TIMESTAMP not in given else int(given[_TIMESTAMP])
            rows_max = None if _ROWS_PER_TRIGGER_MAX not in given else int(given[_ROWS_PER_TRIGGER_MAX])
        except (ValueError, AttributeError) as error:
            message = (
                f"topic {name}: {error}; log.scan is one of {', '.join(StartupMode)}, {_FORMAT} one of "
                f"{', '.join(ExternalFormat)}, the other two are whole numbers"
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
            primary_keys=_names(given.get(_KEY_COLUMNS)),
            sequence_fields=_names(given.get(_SEQUENCE)),
            merge_engine=engine,
            start=start,
            startup=startup,
            timestamp_millis=timestamp,
            rows_per_trigger_max=rows_max,
            applied_to=given.get(APPLIED_TO),
            settings=SourceSettings.parse(given),
        )

    def log(self) -> KafkaLogStore:
        """Return the topic as a log of records with one bucket per partition. Connections are shared in the process.

        Raises ``NotFoundError`` if the topic does not exist, since other programs have to create it, and
        ``InvalidInputError`` without Kafka's client.
        """
        with importing_for(f"topic {self.name!r} of Kafka", InvalidInputError):
            from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster
            from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
            from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore

        clock = SystemClock()
        settings = KafkaLogSettings(topic=self.name, table_uuid="", client_options=self.client_options)
        cluster = KafkaCluster.shared(settings.client_config, settings.limit_ms)
        cluster.forget_leaders(self.name)  # another program may have added partitions
        try:
            partitions = cluster.leaders(self.name, cluster.retries(clock, f"find topic {self.name!r}"))
        except NotFoundError as error:
            message = (
                f"Kafka at {settings.servers} has no topic {self.name!r} to read from; check its name and the servers, "
                "or create it: the program that writes the changes has to run first"
            )
            raise NotFoundError(message) from error
        schema = new_table_schema(self.columns, options={"bucket": str(len(partitions))}, time_millis=0)
        return KafkaLogStore(schema, settings, clock)

    def names_in_cluster(self) -> list[str]:
        """Return the names of all topics of the topic's cluster that the user may see, sorted.

        Raises ``UnavailableError`` if no broker answers, and ``InvalidInputError`` without Kafka's client.
        """
        with importing_for("the topics of Kafka", InvalidInputError):
            from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
            from storage_lib.log_store.kafka.kafka_topic_names import topic_names

        settings = KafkaLogSettings(topic="", table_uuid="", client_options=self.client_options)
        return topic_names(settings, SystemClock())

    def key_columns(self, key: bytes) -> tuple[str, ...]:
        """Return the names of the columns of a record's key; ``InvalidInputError`` if it does not name them."""
        return key_columns(key, registry_of(self.name, self.registry_options) if self.format.is_avro else None)

    def captured(self, log: RecordLog, table: TableSchema | None = None, *, is_stored: bool = False) -> CapturedTopic:
        """Return the topic as changes of ``table``, or of the declared columns if ``table`` is None.

        ``is_stored``: ``log`` holds records that were rejected, one by one.
        Raises ``InvalidInputError`` for a table that can't hold the records of the format.
        """
        schema = (
            new_table_schema(self.columns, primary_keys=self.primary_keys, options=self._options(), time_millis=0)
            if table is None
            else table
        )
        metadata = metadata_columns(self.name, self.format, self.settings.metadata, schema)
        filled = {each.field.name for each in metadata}
        nullable = tuple(
            each if each.name in schema.primary_keys else replace(each, type=each.type.with_nullable(True))
            for each in schema.fields
            if each.name not in filled
        )
        engine = self.merge_engine if table is None else TableOptions.parse(table.options).merge_engine
        captured = CapturedTable(
            schema=replace(schema, fields=nullable, partition_keys=()),
            modes=self.settings.modes,
            before_image=self.settings.before_image,
            needs_old_rows=engine is not None and engine.needs_old_rows,
            is_known=engine is not None,
            metadata=metadata,
            topic=self.name,
        )
        if captured.requires_metadata and not (self.format.is_flattened or is_stored):
            # An envelope tells the deletion before its tombstone, unless that is all that compaction has left.
            captured = replace(captured, ignores_tombstones=not log.is_compacted())
        registry = registry_of(self.name, self.registry_options) if self.format.is_avro else None
        decoder = self._decoder(captured, registry)
        return CapturedTopic(name=self.name, log=log, decoder=decoder, settings=self.settings, registry=registry)

    def _options(self) -> dict[str, str]:
        """Return the options of the table that stands in for an unknown one; only columns of metadata are ordered."""
        ordered = any(name in self.settings.metadata for name in self.sequence_fields)
        return {**_ANY_BUCKET, **({_SEQUENCE: ",".join(self.sequence_fields)} if ordered else {})}

    def _decoder(self, table: CapturedTable, registry: SchemaRegistry | None) -> CaptureDecoder:
        if self.format.is_upsert:
            if not table.primary_keys:
                message = (
                    f"topic {self.name!r}: an upsert-kafka topic needs a table with a primary key, or option "
                    f"{_KEY_COLUMNS}: each record is the newest of its key"
                )
                raise InvalidInputError(message)
            return UpsertRecordDecoder(table=table, registry=registry)
        if registry is not None:
            return AvroRecordDecoder(table=table, registry=registry, is_flattened=self.format.is_flattened)
        return JsonRecordDecoder(table=table, has_schema=self.format.has_schema, is_flattened=self.format.is_flattened)

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

    def first_offsets(self, log: RecordLog) -> LogOffsets:
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


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


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
