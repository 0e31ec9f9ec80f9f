"""Ingests new records of an external topic into a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import checked_count, checked_options, checked_text, is_nothing
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.allowed_servers import OPTIONS_OF_A_TOPIC, refuse_options_of_form
from dynamic_table.policies.first_try import seen_by_first_try
from dynamic_table.policies.last_of_source import last_of_source
from dynamic_table.quality.row_expectations import checked_expectations_of
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib.table.sources.row_check import RowCheck

__all__ = ["IngestOperator"]

BEFORE_KEY = "snapshot_before"  # key in the task's state store


class IngestOperator(TableOperator):
    """Reads a topic of changes up to its current end into a table, each record exactly once.

    The table's snapshots store the offsets that were read, so the task has no state of its own: a retried or cleared
    task resumes after the last commit, and after a rollback of the table at the end of the restored content.

    :param topic: the topic, on the connection's Kafka. (templated)
    :param format: format of the topic, one that ``storage_lib.ingest`` supports. (templated)
    :param source: name under which the snapshots store the topic's offsets; default: the topic. (templated)
    :param startup: where the first run starts: ``full``, ``latest`` or ``from-timestamp``. (templated)
    :param timestamp_millis: start of ``from-timestamp``, in epoch milliseconds. (templated)
    :param options: options of the source, which override the connection's, such as ``log.kafka.bootstrap.servers``.
        (templated)
    :param skip_expired: continue after records that the topic no longer holds.
    :param expectations: expectations as for ``ValidateTableOperator``: plain data, a file or a function. Rows that do
        not meet one of severity ``reject`` are refused, as option ``source.on-reject`` says. (templated)
    """

    template_fields: Sequence[str] = (
        *("table", "topic", "format", "source", "startup", "timestamp_millis", "options"),
        "expectations",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"expectations": "json"}
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
        skip_expired: bool = False,
        expectations: Sequence[Mapping[str, Any]] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.skip_expired = skip_expired
        self.topic = topic
        self.format = format
        self.source = source
        self.startup = startup
        self.timestamp_millis = timestamp_millis
        self.options: Any = options
        self.expectations = expectations

    def execute(self, context: Context) -> dict[str, Any]:
        """Ingest, and return the last snapshot's id (None without new records) and the number of rows."""
        from storage_lib import ingest

        arguments: dict[str, Any] = {
            "topic": checked_text(self.topic, "topic"),
            "format": checked_text(self.format, "format"),
            "source": None if is_nothing(self.source) else checked_text(self.source, "source"),
            "startup": checked_text(self.startup, "startup"),
        }
        if not is_nothing(self.timestamp_millis):
            arguments["timestamp"] = checked_count(self.timestamp_millis, "timestamp_millis")
        options = {} if is_nothing(self.options) else checked_options(self.options, "options")
        arguments["expect"] = self._row_check(Path(context["dag"].folder))
        of_connection = self.hook.options
        refuse_options_of_form(options, self.hook, of_source=OPTIONS_OF_A_TOPIC)
        table = self.hook.load_table(self.table)
        before = seen_by_first_try(context, BEFORE_KEY, lambda: table.inspect.latest_snapshot_id() or 0)
        with progress_in_log(self.log):
            result = ingest(
                table, options={**of_connection, **options}, skip_expired=self.skip_expired is True, **arguments
            )
        refused = result.skipped_count + result.rejected_count
        if refused:
            kept = "kept in its rejected records" if result.rejected_count else "skipped"
            self.log.warning("%d records of %s do not fit table %s and were %s", refused, self.topic, self.table, kept)
        if result.snapshot is not None:
            version: int | None = result.snapshot.id
        else:
            version = last_of_source(table, arguments["source"] or arguments["topic"], before)
        return announce(
            context,
            table=self.table,
            op="ingest",
            version=version,
            rows=result.row_count,
            rejected=result.rejected_count,
            skipped=result.skipped_count,
        )

    def _row_check(self, folder: Path) -> RowCheck | None:
        if is_nothing(self.expectations):
            return None
        return checked_expectations_of(self.expectations, self.table, folder)[1]
