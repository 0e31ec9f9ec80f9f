"""Compares a table with its source: a table of PostgreSQL, or another table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from dynamic_table.arguments.rendered_argument import checked_count, checked_names, checked_text, is_nothing
from dynamic_table.connection.postgres_address import postgres_address
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.versions.sdk_exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from storage_lib import DynamicTable, Verification

__all__ = ["RowsDifferError", "VerifyOperator"]


class RowsDifferError(AirflowFailException):
    """The rows of the table and its source differ."""


class VerifyOperator(TableOperator):
    """Fails without retries if the table and its source do not have the same rows; the log names keys that differ.

    The source is a table of PostgreSQL, or another table of the connection. ``source_conn_id`` is not templated: a form
    can't name a server. Values are not logged. Run it when the table has all changes of its source.

    :param source_conn_id: Airflow connection of type ``postgres``. (not templated)
    :param relation: ``schema.name`` of the source; default: the table's name without its database. (templated)
    :param source_table: ``database.table`` to compare with, instead of a database. (templated)
    :param key: columns that identify a row; default: the primary key. (templated)
    :param exclude: columns that are not compared. (templated)
    :param snapshot_id: compare this snapshot; default: the newest. (templated)
    :param limit: differences of each kind to name.
    """

    template_fields: Sequence[str] = ("table", "relation", "source_table", "key", "exclude", "snapshot_id")
    ui_color = "#f6f0d4"

    def __init__(
        self,
        *,
        source_conn_id: str | None = None,
        relation: str | None = None,
        source_table: str | None = None,
        key: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        snapshot_id: int | str | None = None,
        limit: int = 20,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source_conn_id = source_conn_id
        self.relation = relation
        self.source_table = source_table
        self.key = key
        self.exclude = exclude
        self.snapshot_id = snapshot_id
        self.limit = limit

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002  Airflow's interface
        """Compare, and return the numbers of rows; a RowsDifferError names the first differences."""
        from storage_lib import verify

        with progress_in_log(self.log):
            result = verify(
                self.hook.load_table(checked_text(self.table, "table")),
                self._source(),
                relation=None if is_nothing(self.relation) else checked_text(self.relation, "relation"),
                key=checked_names(self.key, "key") or None,
                exclude=checked_names(self.exclude, "exclude"),
                snapshot_id=None if is_nothing(self.snapshot_id) else checked_count(self.snapshot_id, "snapshot_id"),
                limit=checked_count(self.limit, "limit"),
            )
        if not result.is_equal:
            raise RowsDifferError(_said(result))
        return {
            "table": self.table,
            "table_position": result.table_position,
            "source_position": result.source_position,
            "rows": result.table_rows,
        }

    def _source(self) -> DynamicTable | str:
        from storage_lib.errors import InvalidInputError

        has_table = not is_nothing(self.source_table)
        if has_table == (self.source_conn_id is not None):
            message = f"Task {self.task_id}: give either source_conn_id or source_table."
            raise InvalidInputError(message)
        if self.source_conn_id is None:
            return self.hook.load_table(checked_text(self.source_table, "source_table"))
        return postgres_address(BaseHook.get_connection(self.source_conn_id))


def _said(result: Verification) -> str:
    """Return the numbers and the keys that differ, without values."""
    head = (
        f"{result.table} ({result.table_position}, {result.table_rows} rows) and {result.source} "
        f"({result.source_position}, {result.source_rows} rows) differ: {result.missing} missing, {result.extra} "
        f"extra, {result.different} different, {result.repeated} repeated"
    )
    named = [
        f"{each.kind}: {dict(each.key)}" + (f" in {', '.join(each.columns)}" if each.columns else "")
        for each in result.differences
    ]
    return "\n".join([head, *named])
