"""Creates a table with both its stores; one that is there is compared with what is declared, never changed."""

from __future__ import annotations

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
from dynamic_table.sinks.sink_settings import secrets_apart
from dynamic_table.table_events import announce
from dynamic_table.table_pools import DeclaredPool, table_pool

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
    :param ddl: instead of the columns and all that follows up to ``comment``: a statement ``CREATE TABLE ...`` for the
        same table; ``{% include "orders.sql" %}`` takes it from a file beside the DAG. (templated)
    :param primary_key: the key's columns; none: rows have no identity. (templated)
    :param partition_by: the partition columns. (templated)
    :param options: table options; what is not given comes from the connection, then from the defaults. (templated)
    :param comment: what the table is for. (templated)
    :param on_drift: what to do about a table that is not as declared: ``fail`` or ``warn``. (templated)
    :param table_pool_slots: how many tasks may rewrite files of the table at a time: makes Airflow's pool
        ``dynamic_table.<db>.<table>`` with so many slots, which compaction, reprocessing, drops and publications of
        the table then use. None: no pool is looked for. A pool that is there keeps its slots. (templated)
    :param airflow_conn_id: as who to ask Airflow for the pool; see ``dynamic_table.connection.airflow_api``.
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
        """Create the table and return its name, columns, location, and how it differs from what is declared."""
        from storage_lib.catalog.table_drift import table_drift

        checked_choice(self.on_drift, "on_drift", ON_DRIFT)
        declared = self._declared()
        self._refuse_what_reaches_out(declared)
        pool = self._pool()
        catalog = self.hook.get_conn()
        is_new = not catalog.table_exists(self.table)
        drift = [] if is_new else list(table_drift(catalog.load_table(self.table), declared))
        drift += pool.drift() if pool else []
        if drift:
            self._report(drift)
        if pool:
            pool.create()
        if drift and not is_new:
            table = catalog.load_table(self.table)
        else:
            # Of a table that is there, too: its log is made if it lacks one.
            table = catalog.create_table(self.table, declared, if_not_exists=True)
        facts: dict[str, Any] = {
            "location": table.location,
            "columns": [field.name for field in table.schema.fields],
            "drift": list(drift),
        }
        facts |= {"pool": pool.name} if pool else {}
        # Only a new table is news.
        return announce(context, table=self.table, op="provision", version=0 if is_new else None, **facts)

    def _pool(self) -> DeclaredPool | None:
        """Return the pool that is asked for, if one is."""
        if is_nothing(self.table_pool_slots):
            return None
        slots = checked_count(self.table_pool_slots, "table_pool_slots", least=1)
        what = f"Tasks that rewrite files of {self.table}"
        return DeclaredPool(table_pool(self.table), slots, what, AirflowApi(self.airflow_conn_id))

    def _refuse_what_reaches_out(self, declared: TableDescriptor) -> None:
        """A form may declare the table; nobody who opens or reads it is to send credentials or run code by that."""
        from storage_lib.spark.sink.sink_spec import refuse_other_servers

        _, secret, _ = secrets_apart(self.hook.options, self.hook.secret_keys)
        refuse_other_servers(declared.options, secret)
        if any(key.startswith("column.") for key in declared.options):
            from storage_lib.sql.definition.virtual_columns import refuse_reaching_out

            refuse_reaching_out(self.table, declared.options)

    def _report(self, drift: Sequence[str]) -> None:
        from storage_lib.errors import AlreadyExistsError

        lines = "\n".join(f"  {line}" for line in drift)
        message = f"table {self.table} is not as declared:\n{lines}\n"
        if self.on_drift == "fail":
            remedy = "Nothing was changed: change the declaration, or alter the table so that they agree."
            raise AlreadyExistsError(message + remedy)
        self.log.warning("%sNothing was changed.", message)

    def _declared(self) -> TableDescriptor:
        from storage_lib import TableDescriptor
        from storage_lib.schema.types.type_spelling import parse_type

        if not is_nothing(self.ddl):
            return self._of_ddl(checked_text(self.ddl, "ddl"))
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

    def _of_ddl(self, text: str) -> TableDescriptor:
        from storage_lib.errors import InvalidInputError
        from storage_lib.sql import declared_table

        beside = ("columns", "primary_key", "partition_by", "options", "comment")
        if said := next((name for name in beside if not is_nothing(getattr(self, name) or None)), None):
            message = f"table {self.table}: {said} and ddl both say what it shall be; leave one of them out."
            raise InvalidInputError(message)
        parts, declared = declared_table(text)
        if self.table.split(".")[-len(parts) :] != list(parts):
            message = f"ddl creates {'.'.join(parts)}, but the task is about {self.table}; name the same table."
            raise InvalidInputError(message)
        return declared
