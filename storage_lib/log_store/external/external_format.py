"""Formats of the records of external topics."""

from __future__ import annotations

from enum import StrEnum


class ExternalFormat(StrEnum):
    """Formats of external topics."""

    DEBEZIUM_JSON = "debezium-json"
    DEBEZIUM_JSON_SCHEMA = "debezium-json-schema"
    """Each record holds its schema, as Kafka Connect's JsonConverter writes it unless ``schemas.enable=false``."""

    DEBEZIUM_AVRO = "debezium-avro"
    DEBEZIUM_FLATTENED_JSON = "debezium-flattened-json"
    """Records are rows: Debezium's transformation ExtractNewRecordState has taken them out of their envelopes."""

    DEBEZIUM_FLATTENED_JSON_SCHEMA = "debezium-flattened-json-schema"
    DEBEZIUM_FLATTENED_AVRO = "debezium-flattened-avro"
    UPSERT_KAFKA = "upsert-kafka"
    UPSERT_KAFKA_AVRO = "upsert-kafka-avro"

    @property
    def is_upsert(self) -> bool:
        """Whether a record holds the newest row of its key, and a deletion holds only the key."""
        return self in (ExternalFormat.UPSERT_KAFKA, ExternalFormat.UPSERT_KAFKA_AVRO)

    @property
    def is_flattened(self) -> bool:
        """Whether a record of Debezium is a row rather than an envelope."""
        return self.startswith("debezium-flattened-")

    @property
    def has_schema(self) -> bool:
        """Whether each record in JSON holds its schema."""
        return self.endswith("-schema")

    @property
    def is_avro(self) -> bool:
        """Whether the records are in Avro, with their schemas in a registry."""
        return self.endswith("-avro")
