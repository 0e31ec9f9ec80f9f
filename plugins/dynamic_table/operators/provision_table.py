"""Creates a table with both its stores; one that is there is compared with what is declared, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.rendered_argument import (
    checked_choice,
    checked_mapping,
    checked_names,
    checked_options,
    checked_text,
)
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib import TableDescriptor

__all__ = ["ProvisionTableOperator"]

ON_DRIFT = ("fail", "warn")


class ProvisionTableOperator(TableOperator):
    """Creates a dynamic table; one that is there already is left as it is, and must be as declared.

    Where it is not, the differences (columns, types, keys, partition columns, options, comment) are listed in the
    error, or with ``on_drift="warn"`` in the log and the result.

    :param columns: ``{name: type}``, types as in SQL: ``STRING``, ``DECIMAL(10, 2)``, ``TIMESTAMP(3)``. (templated)
    :param primary_key: the key's columns; none: rows have no identity. (templated)
    :param partition_by: the partition columns. (templated)
    :param options: table options; what is not given comes from the connection, then from the defaults. (templated)
    :param comment: what the table is for. (templated)
    :param on_drift: what to do about a table that is not as declared: ``fail`` or ``warn``. (templated)
    """

    template_fields: Sequence[str] = (
        "table",
        "columns",
        "primary_key",
        "partition_by",
        "options",
        "comment",
        "on_drift",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"columns": "json", "options": "json"}
    announces = True
    ui_color = "#e4ecd8"

    def __init__(
        self,
        *,
        columns: Mapping[str, str] | str,
        primary_key: Sequence[str] | str = (),
        partition_by: Sequence[str] | str = (),
        options: Mapping[str, str] | str | None = None,
        comment: str | None = None,
        on_drift: str = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns: Any = columns  # a template until it is rendered
        self.primary_key: Any = primary_key
        self.partition_by: Any = partition_by
        self.options: Any = options
        self.comment = comment
        self.on_drift = on_drift

    def execute(self, context: Context) -> dict[str, Any]:
        """Create the table and return its name, columns, location, and how it differs from what is declared."""
        from storage_lib.catalog.table_drift import table_drift

        checked_choice(self.on_drift, "on_drift", ON_DRIFT)
        declared = self._declared()
        catalog = self.hook.get_conn()
        is_new = not catalog.table_exists(self.table)
        drift: Sequence[str] = () if is_new else table_drift(catalog.load_table(self.table), declared)
        if drift:
            self._report(drift)
            table = catalog.load_table(self.table)
        else:
            # Of a table that is there, too: its log is made if it lacks one.
            table = catalog.create_table(self.table, declared, if_not_exists=True)
        facts: dict[str, Any] = {
            "location": table.location,
            "columns": [field.name for field in table.schema.fields],
            "drift": list(drift),
        }
        # Only a new table is news.
        return announce(context, table=self.table, op="provision", version=0 if is_new else None, **facts)

    def _report(self, drift: Sequence[str]) -> None:
        from storage_lib.errors import AlreadyExistsError

        lines = "\n".join(f"  {line}" for line in drift)
        message = f"table {self.table} exists and is not as declared:\n{lines}\n"
        if self.on_drift == "fail":
            remedy = "Nothing was changed: change the declaration, or alter the table so that they agree."
            raise AlreadyExistsError(message + remedy)
        self.log.warning("%sNothing was changed.", message)

    def _declared(self) -> TableDescriptor:
        from storage_lib import TableDescriptor
        from storage_lib.schema.type_spelling import parse_type

        columns = checked_mapping(self.columns, "columns")
        return TableDescriptor(
            schema=tuple(
                (name, parse_type(checked_text(text, f"columns[{name!r}]"))) for name, text in columns.items()
            ),
            primary_key=checked_names(self.primary_key, "primary_key"),
            partition_by=checked_names(self.partition_by, "partition_by"),
            options=checked_options(self.options, "options"),
            comment=self.comment,
        )
