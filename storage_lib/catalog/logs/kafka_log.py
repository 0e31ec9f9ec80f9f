"""Open a table's log in Kafka from its options. Imports the client only when a table has such a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from storage_lib.catalog.logs.orphan_topics import OrphanTopics, TableTopics
from storage_lib.catalog.table_name import TableName
from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.io.environment import Clock
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.options.table_options import UUID_OPTION, TableOptions
from storage_lib.schema.placing.layout import TOPIC_OPTION
from storage_lib.schema.table_schema import TableSchema


def open_kafka_log(name: TableName, schema: TableSchema, options: TableOptions, uuid: str, clock: Clock) -> LogStore:
    """Return a table's log, which need not exist yet. Raises ``InvalidInputError`` without servers or the client."""
    if options.log_kafka_bootstrap_servers is None:
        message = (
            f"table {name} has its log in Kafka, but no bootstrap servers are known; open the catalog with "
            "options={'log.kafka.bootstrap.servers': 'host:port'}, or give the command line "
            "--option log.kafka.bootstrap.servers=host:port"
        )
        raise InvalidInputError(message)
    with importing_for(f"table {name}, whose log is in Kafka,", InvalidInputError):
        from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
        from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
    client_options = {**options.log_kafka_client, "bootstrap.servers": options.log_kafka_bootstrap_servers}
    if options.log_kafka_replication_factor > 0:
        client_options["replication.factor"] = str(options.log_kafka_replication_factor)
    settings = KafkaLogSettings(
        topic=options.log_kafka_topic or str(name),
        table_uuid=uuid,
        client_options=client_options,
        changelog_mode=options.effective_changelog_mode(has_primary_key=bool(schema.primary_keys)),
        retention_ms=options.log_retention_ms,
        transaction_timeout_ms=options.log_transaction_timeout_ms,
        format=options.log_format,
        key_format=options.log_key_format,
        registry_options=options.log_schema_registry,
        on_corrupt=options.log_scan_on_corrupt,
    )
    return KafkaLogStore(schema, settings, clock)


def kafka_orphan_topics(
    options: Mapping[str, str], clock: Clock, schemas: Callable[[], Iterator[tuple[TableName, list[TableSchema]]]]
) -> OrphanTopics:
    """Return the topics that no schema uses. Raises ``InvalidInputError`` without servers or the client."""
    with importing_for("the search for unused topics in Kafka", InvalidInputError):
        from storage_lib.log_store.kafka.kafka_marked_topics import KafkaMarkedTopics
        from storage_lib.log_store.kafka.kafka_topic import mark_of

    def tables() -> Iterator[TableTopics]:
        for name, in_use in schemas():
            uuid = in_use[0].options.get(UUID_OPTION)
            if uuid is not None:
                used = frozenset(schema.options.get(TOPIC_OPTION, str(name)) for schema in in_use)
                yield TableTopics(table=str(name), mark=mark_of(uuid), used=used)

    return OrphanTopics(KafkaMarkedTopics(options, clock), tables)
