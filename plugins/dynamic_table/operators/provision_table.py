"""Creates a table with both its stores, unless it is there."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from dynamic_table.hook import DynamicTableHook
from dynamic_table.rendered_argument import checked_mapping, checked_names, checked_options, checked_text
from dynamic_table.table_events import announce, with_table_events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from airflow.sdk import Context

__all__ = ["ProvisionTableOperator"]


class ProvisionTableOperator(BaseOperator):
    """Creates a dynamic table; one that is there already must have the same columns and keys.

    :param table: ``database.table``. (templated)
    :param columns: ``{name: type}``, types as in SQL: ``STRING``, ``DECIMAL(10, 2)``, ``TIMESTAMP(3)``. (templated)
    :param primary_key: the key's columns; none: rows have no identity. (templated)
    :param partition_by: the partition columns. (templated)
    :param options: table options; what is not given comes from the connection, then from the defaults. (templated)
    :param comment: what the table is for. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table", "columns", "primary_key", "partition_by", "options", "comment")
    template_fields_renderers: ClassVar[dict[str, str]] = {"columns": "json", "options": "json"}
    ui_color = "#e4ecd8"

    def __init__(
        self,
        *,
        table: str,
        columns: Mapping[str, str] | str,
        primary_key: Sequence[str] | str = (),
        partition_by: Sequence[str] | str = (),
        options: Mapping[str, str] | str | None = None,
        comment: str | None = None,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**with_table_events(kwargs))
        self.table = table
        self.columns: Any = columns  # a template until it is rendered
        self.primary_key: Any = primary_key
        self.partition_by: Any = partition_by
        self.options: Any = options
        self.comment = comment
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The way to the table."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:
        """Create the table and return its name, columns and location."""
        catalog = self.hook.get_conn()
        version = None if catalog.table_exists(self.table) else 0  # only a new table is news
        table = catalog.create_table(
            self.table,
            self._arrow_schema(),
            primary_key=checked_names(self.primary_key, "primary_key"),
            partition_by=checked_names(self.partition_by, "partition_by"),
            options=checked_options(self.options, "options"),
            comment=self.comment,
            if_not_exists=True,
        )
        facts: dict[str, Any] = {"location": table.location, "columns": [field.name for field in table.schema.fields]}
        return announce(context, table=self.table, op="provision", version=version, **facts)

    def _arrow_schema(self) -> pa.Schema:
        import pyarrow as pa

        from storage_lib.schema.type_spelling import parse_type

        columns = checked_mapping(self.columns, "columns")
        types = {name: parse_type(checked_text(text, f"columns[{name!r}]")) for name, text in columns.items()}
        return pa.schema([pa.field(name, kind.arrow, nullable=kind.nullable) for name, kind in types.items()])
