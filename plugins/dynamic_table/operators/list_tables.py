"""Lists the tables of a connection, for mapped tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_names
from dynamic_table.operators.table_operator import CatalogOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ListTablesOperator"]


class ListTablesOperator(CatalogOperator):
    """Returns ``database.table`` of every table.

    :param tables: only these tables; None or empty: all of the catalog. (templated)
    :param database: only tables of this database; None: of all. (templated)
    """

    template_fields: Sequence[str] = ("tables", "database")

    def __init__(
        self,
        *,
        tables: Sequence[str] | str | None = None,
        database: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.database = database

    def execute(self, context: Context) -> list[str]:  # noqa: ARG002  Airflow's signature
        """Return the names, sorted."""
        if chosen := checked_names(self.tables, "tables"):
            return sorted(set(chosen))
        return sorted(self.hook.list_tables(self.database))
