"""Debezium's modes: how a connector is configured, and what form its records have.

A mode is a form of records (JSON, JSON with the schema in each record, Avro; whole envelopes or flattened rows) with
the representation of values that Debezium's own options choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from local_process import LOOPBACK

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.apicurio.registry.utils.converter.AvroConverter"
CONFLUENT_API = "/apis/ccompat/v7"
NATIVE_API = "/apis/registry/v2"

AS_TEXT = {
    "decimal.handling.mode": "string",
    "time.precision.mode": "isostring",
    "binary.handling.mode": "base64",
    "interval.handling.mode": "string",
    "hstore.handling.mode": "map",
}
AS_CONNECT = {"decimal.handling.mode": "double", "time.precision.mode": "connect", "binary.handling.mode": "hex"}
MICROSECONDS = {
    "time.precision.mode": "adaptive_time_microseconds",
    "binary.handling.mode": "base64-url-safe",
    "unavailable.value.placeholder": "(not sent)",
    "tombstones.on.delete": "false",
    "provide.transaction.metadata": "true",
}
FLATTENED = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
REWRITTEN = {
    **FLATTENED,
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
    "transforms.unwrap.add.fields": "op,table,lsn,source.ts_ms",
}


@dataclass(frozen=True, slots=True)
class Mode:
    """``form`` of the records (``json``, ``json-schema`` or ``avro``), and Debezium's options if not the defaults."""

    form: str = "json"
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_flattened(self) -> bool:
        """Whether the records hold rows without an envelope."""
        return "transforms" in self.options

    @property
    def lost(self) -> frozenset[str]:
        """Columns of the game whose values this mode loses."""
        found = set()
        if self.options.get("decimal.handling.mode") == "double":
            found.add("c_wide")  # a double has fewer digits
        if self.options.get("time.precision.mode") == "connect":
            found.add("c_moment")  # it has only milliseconds
        if self.options.get("binary.handling.mode", "").startswith("base64"):
            found.add("c_bytes")  # a long value that is not sent looks like NULL
        return frozenset(found)

    @property
    def sent_types(self) -> dict[str, str]:
        """Our types of the columns of the game, as records tell them: some modes send several types as one."""
        decimals, moments = ("DECIMAL(10, 2)", "DECIMAL(38, 10)"), ("TIMESTAMP(3)", "TIMESTAMP(6)")
        decimal = {"string": "STRING", "double": "DOUBLE"}.get(self.options.get("decimal.handling.mode", ""))
        moment = {"isostring": moments[1], "connect": moments[0]}.get(self.options.get("time.precision.mode", ""))
        return {
            **(dict.fromkeys(decimals, decimal) if decimal else {}),
            **(dict.fromkeys(moments, moment) if moment else {}),
        }

    @property
    def reading(self) -> dict[str, str]:
        """Options of a reader whose records carry no schema: they name the connector's modes."""
        names = {
            "decimal.handling.mode": "debezium.decimal-handling-mode",
            "time.precision.mode": "debezium.time-precision-mode",
            "binary.handling.mode": "debezium.binary-handling-mode",
            "unavailable.value.placeholder": "debezium.unavailable-value-placeholder",
        }
        return {ours: self.options[theirs] for theirs, ours in names.items() if theirs in self.options}

    def converters(self, registry_url: str) -> dict[str, str]:
        """Return the options that choose how keys and values are written."""
        if self.form == "avro":
            # With ids of contents, four bytes long and not in headers, this is Confluent's wire format.
            each = {
                "converter": AVRO,
                "converter.apicurio.registry.url": registry_url.replace(CONFLUENT_API, NATIVE_API),
                "converter.apicurio.registry.auto-register": "true",
                "converter.apicurio.registry.find-latest": "true",
                "converter.apicurio.registry.as-confluent": "true",
                "converter.apicurio.registry.use-id": "contentId",
                "converter.apicurio.registry.headers.enabled": "false",
            }
        else:
            each = {"converter": JSON, "converter.schemas.enable": str(self.form == "json-schema").lower()}
        return {f"{part}.{name}": value for part in ("key", "value") for name, value in each.items()}


MODES: Mapping[str, Mode] = {
    **{form: Mode(form) for form in ("json", "json-schema", "avro")},
    **{f"flattened-{form}": Mode(form, REWRITTEN) for form in ("json", "json-schema", "avro")},
    "flattened-json-tombstones": Mode("json", FLATTENED),
    **{f"{form}-as-text": Mode(form, AS_TEXT) for form in ("json", "json-schema", "avro")},
    **{f"{form}-as-connect": Mode(form, AS_CONNECT) for form in ("json", "json-schema")},
    **{f"{form}-microseconds": Mode(form, MICROSECONDS) for form in ("json", "json-schema")},
}


def postgres_connector(mode: Mode, *, name: str, port: int, registry_url: str) -> dict[str, str]:
    """Return the configuration of a connector whose topics begin with ``name``, and whose slot is named likewise."""
    own = name.replace("-", "_")
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "plugin.name": "pgoutput",
        "database.hostname": LOOPBACK,
        "database.port": str(port),
        "database.user": "dynamic",
        "database.password": "unused",
        "database.dbname": "postgres",
        "topic.prefix": name,
        "slot.name": own,
        "publication.name": own,
        "publication.autocreate.mode": "all_tables",
        "skipped.operations": "none",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        **mode.converters(registry_url),
        **mode.options,
    }


def mariadb_connector(
    mode: Mode, *, name: str, number: int, port: int, database: str, registry_url: str, history: Path
) -> dict[str, str]:
    """Return the configuration of a connector of a MariaDB, which takes part in its replication as server ``number``.

    Topics begin with ``name``; the connector keeps the shapes of the tables in the file ``history``.
    """
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "tasks.max": "1",
        "database.hostname": LOOPBACK,
        "database.port": str(port),
        "database.user": "root",
        "database.password": "",
        "database.ssl.mode": "disable",
        "database.server.id": str(number),
        "database.include.list": database,
        "topic.prefix": name,
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(history),
        "skipped.operations": "none",
        "poll.interval.ms": "20",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        **mode.converters(registry_url),
        **mode.options,
    }
