"""Creates a table with both its stores; an existing table is compared with its declaration, never changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import (
    checked_choice,
    checked_count,
    checked_mapping,
    checked_names,
    checked_options,
    checked_text,
    is_nothing,
)
from dynamic_table.connection.airflow_api import AIRFLOW_CONN_ID, AirflowApi
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.allowed_servers import refuse_table_options_of_form
from dynamic_table.policies.first_try import seen_by_first_try
from dynamic_table.table_events import announce
from dynamic_table.table_pools import DeclaredPool, table_pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib import TableDescriptor

__all__ = ["ProvisionTableOperator"]

ON_DRIFT = ("fail", "warn")
MISSING_KEY = "table_was_missing"  # key in the task's state store


class ProvisionTableOperator(TableOperator):
    """Creates a dynamic table; an existing table is not changed and has to match the declaration.

    If it does not match, the error lists the differences (columns, types, keys, partition columns, options, comment);
    with ``on_drift="warn"`` the log and the result do.

    :param columns: ``{name: type}``, types as in SQL: ``STRING``, ``DECIMAL(10, 2)``, ``TIMESTAMP(3)``, ``BIGINT
        METADATA FROM 'value.source.lsn'``. (templated)
    :param ddl: instead of ``columns``, ``primary_key``, ``partition_by``, ``options`` and ``comment``: a statement
        ``CREATE TABLE ...``; ``{% include "orders.sql" %}`` reads it from a file next to the DAG. (templated)
    :param primary_key: the key's columns; none: an append-only table. (templated)
    :param partition_by: the partition columns. (templated)
    :param options: table options, which override the connection's. (templated)
    :param comment: the table's comment. (templated)
    :param on_drift: ``fail`` or ``warn`` if the table differs from the declaration. (templated)
    :param table_pool_slots: how many tasks may rewrite files of the table at a time: creates Airflow's pool
        ``dynamic_table.<db>.<table>`` with that many slots, which compaction, reprocessing, drops and publications of
        the table then use. None: create no pool. An existing pool keeps its slots. (templated)
    :param airflow_conn_id: connection for Airflow's API; see ``dynamic_table.connection.airflow_api``.
    """

    template_fields: Sequence[str] = (
        "table",
        "columns",
        "ddl",
        "primary_key",
        "partition_by",
        "options",
        "comment",
        "on_drift",
        "table_pool_slots",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"columns": "json", "ddl": "sql", "options": "json"}
    announces = True
    ui_color = "#e4ecd8"

    def __init__(
        self,
        *,
        columns: Mapping[str, str] | str | None = None,
        ddl: str | None = None,
        primary_key: Sequence[str] | str = (),
        partition_by: Sequence[str] | str = (),
        options: Mapping[str, str] | str | None = None,
        comment: str | None = None,
        on_drift: str = "fail",
        table_pool_slots: int | str | None = None,
        airflow_conn_id: str = AIRFLOW_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns: Any = columns  # a template until it is rendered
        self.ddl = ddl
        self.primary_key: Any = primary_key
        self.partition_by: Any = partition_by
        self.options: Any = options
        self.comment = comment
        self.on_drift = on_drift
        self.table_pool_slots = table_pool_slots
        self.airflow_conn_id = airflow_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Create the table and return its name, columns, location and differences from the declaration."""
        from storage_lib.catalog.declaration.table_drift import table_drift

        checked_choice(self.on_drift, "on_drift", ON_DRIFT)
        declared = self._declared()
        refuse_table_options_of_form(self.table, declared.options, self.hook)
        pool = self._pool()
        catalog = self.hook.get_conn()
        is_new = not catalog.table_exists(self.table)
        # If the first try created the table and its worker was killed, this one has to emit the event.
        was_missing = seen_by_first_try(context, MISSING_KEY, lambda: is_new)
        drift = [] if is_new else list(table_drift(catalog.load_table(self.table), declared))
        drift += pool.drift() if pool else []
        if drift:
            self._report(drift)
        if pool:
            pool.create()
        if drift and not is_new:
            table = catalog.load_table(self.table)
        else:
            # Also for an existing table: creates its log if that is missing.
            table = catalog.create_table(self.table, declared, if_not_exists=True)
        facts: dict[str, Any] = {
            "location": table.location,
            "columns": [field.name for field in table.schema.fields],
            "drift": list(drift),
        }
        facts |= {"pool": pool.name} if pool else {}
        # Only creating a table is an event.
        return announce(
            context, table=self.table, op="provision", version=0 if is_new or was_missing else None, **facts
        )

    def _pool(self) -> DeclaredPool | None:
        """Return the configured pool, if any."""
        if is_nothing(self.table_pool_slots):
            return None
        slots = checked_count(self.table_pool_slots, "table_pool_slots", least=1)
        what = f"Tasks that rewrite files of {self.table}"
        return DeclaredPool(table_pool(self.table), slots, what, AirflowApi(self.airflow_conn_id))

    def _report(self, drift: Sequence[str]) -> None:
        from storage_lib.errors import AlreadyExistsError

        lines = "\n".join(f"  {line}" for line in drift)
        message = f"table {self.table} is not as declared:\n{lines}\n"
        if self.on_drift == "fail":
            remedy = "Nothing was changed. Change the declaration or alter the table, so that they agree."
            raise AlreadyExistsError(message + remedy)
        self.log.warning("%sNothing was changed.", message)

    def _declared(self) -> TableDescriptor:
        from storage_lib import TableDescriptor

        if not is_nothing(self.ddl):
            return self._of_ddl(checked_text(self.ddl, "ddl"))
        columns = checked_mapping(self.columns, "columns")
        described = TableDescriptor.for_managed().columns(
            {name: checked_text(text, f"columns[{name!r}]") for name, text in columns.items()}
        )
        return replace(
            described,
            primary_key=checked_names(self.primary_key, "primary_key"),
            partition_by=checked_names(self.partition_by, "partition_by"),
            options={**described.options, **checked_options(self.options, "options")},
            comment=None if is_nothing(self.comment) else checked_text(self.comment, "comment"),
        )

    def _of_ddl(self, text: str) -> TableDescriptor:
        from storage_lib.errors import InvalidInputError
        from storage_lib.sql import declared_table

        replaced = ("columns", "primary_key", "partition_by", "options", "comment")
        if given := next((name for name in replaced if not is_nothing(getattr(self, name) or None)), None):
            message = f"table {self.table}: {given} and ddl can't be given together; remove one of them."
            raise InvalidInputError(message)
        parts, declared = declared_table(text)
        if self.table.split(".")[-len(parts) :] != list(parts):
            message = f"ddl creates {'.'.join(parts)}, but the task's table is {self.table}; use the same name."
            raise InvalidInputError(message)
        return declared
