"""Choose the codec of a table's log by its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.options.table_options import ChangelogMode, LogFormat, LogKeyFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage_lib.log_store.codec.debezium_avro import DebeziumAvro
    from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
    from storage_lib.schema.table_schema import TableSchema


def codec_of(schema: TableSchema, settings: KafkaLogSettings) -> DebeziumJson | DebeziumAvro:
    """Return the codec of a table's topic. Raises ``InvalidInputError`` if the format can't represent the table."""
    as_json = DebeziumJson.for_table(schema, settings.changelog_mode)
    if settings.format is LogFormat.DEBEZIUM_JSON:
        return as_json
    return avro_codec(
        schema,
        settings.topic,
        settings.registry_options,
        changelog_mode=settings.changelog_mode,
        avro_keys=settings.key_format is LogKeyFormat.AVRO,
        table_uuid=settings.table_uuid,
    )


def avro_codec(
    schema: TableSchema,
    topic: str,
    registry_options: Mapping[str, str],
    *,
    changelog_mode: ChangelogMode = ChangelogMode.AUTO,
    avro_keys: bool = False,
    table_uuid: str = "",
) -> DebeziumAvro:
    """Return the codec of an Avro topic. Raises ``InvalidInputError`` if no schema registry is configured."""
    from storage_lib.log_store.codec.debezium_avro import DebeziumAvro, refuse_names

    if table_uuid:
        refuse_names(schema)
    return DebeziumAvro(
        schema,
        registry_of(topic, registry_options),
        topic,
        with_update_before=DebeziumJson.for_table(schema, changelog_mode).with_update_before,
        avro_keys=avro_keys,
        table_uuid=table_uuid,
    )


def registry_of(topic: str, options: Mapping[str, str]) -> SchemaRegistry:
    """Return the registry of a topic's schemas. Raises ``InvalidInputError`` if none is configured."""
    with importing_for(f"topic {topic!r}, whose records are in Avro,", InvalidInputError):
        from storage_lib.log_store.codec.schema_registry import SchemaRegistry
    return SchemaRegistry.of(options)
