"""Lists the materialized tables of a connection for the DAG file that makes a DAG of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.materialized.listed_tables import LIST_VARIABLE, materialized_tables, write_list
from dynamic_table.operators.table_operator import CatalogOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["ListMaterializedTablesOperator"]


class ListMaterializedTablesOperator(CatalogOperator):
    """Copies the names, sources, freshness and status of all materialized tables into an Airflow variable.

    If a table can't be read, the task fails and the variable keeps its value.

    :param variable: the variable, which ``refresh_dags`` reads.
    """

    ui_color = "#d9ecd9"

    def __init__(self, *, variable: str = LIST_VARIABLE, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.variable = variable

    def execute(self, context: Context) -> list[str]:  # noqa: ARG002  Airflow's signature
        """Store the list and return the tables' names."""
        tables = materialized_tables(self.hook)
        has_changed = write_list(tables, self.variable)
        self.log.info("%d materialized table(s), %s", len(tables), "changed" if has_changed else "unchanged")
        return list(tables)
