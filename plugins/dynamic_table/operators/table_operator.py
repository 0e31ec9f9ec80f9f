"""What all operators have in common: the connection, and the table that they work on."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

from dynamic_table.events.lineage import table_lineage
from dynamic_table.hook import DynamicTableHook
from dynamic_table.table_events import with_table_events

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CatalogOperator", "TableOperator", "TaskEndedError"]


class TaskEndedError(AirflowException):
    """A person ended the task, or its worker has to go; where the task has tries left, the next one begins anew."""


class CatalogOperator(BaseOperator):
    """Base of the operators that look at the tables of a connection.

    :param dynamic_table_conn_id: the connection.
    """

    def __init__(self, *, dynamic_table_conn_id: str = DynamicTableHook.default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The way to the tables."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def on_kill(self) -> None:
        """End what runs here by an exception, so that it takes back its uncommitted files, its turn and its Spark.

        Airflow calls this in the midst of the work, would go on with that, and kills the process seconds later.
        """
        if isinstance(sys.exc_info()[1], AirflowTaskTimeout):
            return  # which has ended the work already
        message = f"Task {self.task_id} was ended before it was done"
        raise TaskEndedError(message)


class TableOperator(CatalogOperator):
    """Base of the operators that work on one table.

    :param table: ``database.table``. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table",)
    # Whether what it does is an asset event of the table.
    announces: ClassVar[bool] = False

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**with_table_events(kwargs) if self.announces else kwargs)
        self.table = table

    def get_openlineage_facets_on_start(self) -> Any:
        """Tell OpenLineage which table this is about; asked only where its provider is installed."""
        return self._lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Tell which snapshot came of it as well."""
        result = task_instance.xcom_pull(task_ids=self.task_id, map_indexes=task_instance.map_index)
        return self._lineage(result.get("version") if isinstance(result, dict) else None)

    def _lineage(self, version: int | None) -> Any:
        if not self.announces:
            return table_lineage(self.hook, reads=[self.table])
        return table_lineage(self.hook, writes=[self.table], version=version)
