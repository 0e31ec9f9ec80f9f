"""Lists the materialized tables of a connection for the DAG file that makes a DAG of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.declarations.listed_tables import LIST_VARIABLE, materialized_tables, read_list, write_list
from dynamic_table.operators.table_operator import CatalogOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["ListMaterializedTablesOperator"]


class ListMaterializedTablesOperator(CatalogOperator):
    """Copies the names, sources, freshness and status of all materialized tables into an Airflow variable.

    If the catalog can't be listed, the task fails and the variable keeps its value. A table that can't be read keeps
    its entry; the error is logged.

    :param variable: the variable, which ``refresh_dags`` reads.
    """

    ui_color = "#d9ecd9"

    def __init__(self, *, variable: str = LIST_VARIABLE, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.variable = variable

    def execute(self, context: Context) -> list[str]:  # noqa: ARG002  Airflow's signature
        """Store the list and return the tables' names."""
        tables, errors = materialized_tables(self.hook, read_list(self.variable))
        for name, error in errors.items():
            self.log.error("Table %s can't be read, and keeps its entry if it has one: %s", name, error)
        has_changed = write_list(tables, self.variable)
        self.log.info("%d materialized table(s), %s", len(tables), "changed" if has_changed else "unchanged")
        return list(tables)
