"""Brings what is new in a foreign topic into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_count, checked_options, checked_text, is_nothing
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.sinks.sink_settings import secrets_apart
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

__all__ = ["IngestOperator"]


class IngestOperator(TableOperator):
    """Reads a topic of changes up to its end of now into a table, each record once, however often it is run.

    The table's snapshots say how far the topic was read, so there is nothing to keep: a retried or cleared task goes on
    where the last commit ended, and after a rollback of the table where the restored content ends.

    :param topic: the topic; Kafka is the connection's. (templated)
    :param format: of the topic, as ``storage_lib.ingest`` knows it. (templated)
    :param source: the name that the table's snapshots remember the topic by; default: the topic's. (templated)
    :param startup: where the first run begins: ``full``, ``latest`` or ``from-timestamp``. (templated)
    :param timestamp_millis: where ``from-timestamp`` begins, in milliseconds of the epoch. (templated)
    :param options: of the source, over the connection's, such as ``log.kafka.bootstrap.servers``. (templated)
    """

    template_fields: Sequence[str] = ("table", "topic", "format", "source", "startup", "timestamp_millis", "options")
    announces = True
    ui_color = "#dceaf2"

    def __init__(
        self,
        *,
        topic: str,
        format: str = "debezium-json",  # noqa: A002  the field's word for it
        source: str | None = None,
        startup: str = "full",
        timestamp_millis: int | str | None = None,
        options: Mapping[str, str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topic = topic
        self.format = format
        self.source = source
        self.startup = startup
        self.timestamp_millis = timestamp_millis
        self.options: Any = options

    def execute(self, context: Context) -> dict[str, Any]:
        """Ingest, and return the last snapshot's id (None if nothing was new) and how many rows there were."""
        from storage_lib import ingest
        from storage_lib.spark.sink.sink_spec import refuse_other_servers

        arguments: dict[str, Any] = {
            "topic": checked_text(self.topic, "topic"),
            "format": checked_text(self.format, "format"),
            "source": None if is_nothing(self.source) else checked_text(self.source, "source"),
            "startup": checked_text(self.startup, "startup"),
        }
        if not is_nothing(self.timestamp_millis):
            arguments["timestamp_millis"] = checked_count(self.timestamp_millis, "timestamp_millis")
        options = {} if is_nothing(self.options) else checked_options(self.options, "options")
        of_connection = self.hook.options
        _, secret, _ = secrets_apart(of_connection, self.hook.secret_keys)
        refuse_other_servers(options, secret)
        table = self.hook.load_table(self.table)
        result = ingest(table, options={**of_connection, **options}, **arguments)
        version = None if result.snapshot is None else result.snapshot.id
        return announce(context, table=self.table, op="ingest", version=version, rows=result.row_count)
