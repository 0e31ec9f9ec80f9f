"""Writes rejected records of a table into it, after a fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import (
    checked_choice,
    checked_mapping,
    checked_names,
    checked_options,
    checked_text,
    is_nothing,
)
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.allowed_servers import OPTIONS_OF_A_TOPIC, refuse_options_of_form
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

__all__ = ["ReingestRejectedOperator"]

STORED = ("keep", "replace", "discard")


class ReingestRejectedOperator(TableOperator):
    """Writes records that did not decode or fit into the table, each exactly once; those that still do not fit stay.

    A retried task finds the records gone that an earlier try has written.

    :param format: format of the records, one that ``storage_lib.ingest`` supports. (templated)
    :param ids: ids of records in ``<table>$rejected``; default: all. (templated)
    :param source: only records of this source. (templated)
    :param column: only records that did not fit this column. (templated)
    :param fixes: expressions by column that change JSON records before, like ``{"name": "left(name, 10)"}``.
        (templated)
    :param on_stored: records of keys that have a row, which may be newer: ``keep``, ``replace`` or ``discard``.
        (templated)
    :param options: options of the source, which override the connection's. (templated)
    """

    template_fields: Sequence[str] = ("table", "format", "ids", "source", "column", "fixes", "on_stored", "options")
    announces = True
    ui_color = "#dceaf2"

    def __init__(
        self,
        *,
        format: str = "debezium-json",  # noqa: A002  the field's word for it
        ids: Sequence[str] | str | None = None,
        source: str | None = None,
        column: str | None = None,
        fixes: Mapping[str, str] | str | None = None,
        on_stored: str = "keep",
        options: Mapping[str, str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.format = format
        self.ids: Any = ids
        self.source = source
        self.column = column
        self.fixes: Any = fixes
        self.on_stored = on_stored
        self.options: Any = options

    def execute(self, context: Context) -> dict[str, Any]:
        """Re-ingest, and return the snapshot's id (None without one), the numbers of rows and of records that stay."""
        from storage_lib import reingest

        checked_choice(self.on_stored, "on_stored", STORED)
        fixes = {} if is_nothing(self.fixes) else checked_mapping(self.fixes, "fixes")
        options = {} if is_nothing(self.options) else checked_options(self.options, "options")
        of_connection = self.hook.options
        refuse_options_of_form(options, self.hook, of_source=OPTIONS_OF_A_TOPIC)
        with commit_identity(context) as identity:
            result = reingest(
                self.hook.load_table(self.table),
                options={**of_connection, **options},
                format=checked_text(self.format, "format"),
                ids=None if is_nothing(self.ids) else checked_names(self.ids, "ids") or None,
                source=None if is_nothing(self.source) else checked_text(self.source, "source"),
                column=None if is_nothing(self.column) else checked_text(self.column, "column"),
                fixes={name: checked_text(text, f"fixes[{name!r}]") for name, text in fixes.items()},
                on_stored=self.on_stored,
                **identity.arguments(),
            )
        for record, reason in result.remaining.items():
            self.log.warning("rejected record %s of %s stays: %s", record, self.table, reason)
        version = None if result.snapshot is None else result.snapshot.id
        return announce(
            context,
            table=self.table,
            op="reingest",
            version=version,
            rows=result.row_count,
            records=result.record_count,
            remaining=len(result.remaining),
        )
