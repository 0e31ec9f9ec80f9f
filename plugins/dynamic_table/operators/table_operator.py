"""Base classes of all operators: the connection and the table."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.events.lineage import table_lineage
from dynamic_table.hook import DynamicTableHook
from dynamic_table.table_events import with_table_events
from dynamic_table.versions.policed_retries import PolicedRetries
from dynamic_table.versions.sdk_exceptions import AirflowException, AirflowTaskTimeout

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CatalogOperator", "TableOperator", "TaskEndedError"]


class TaskEndedError(AirflowException):
    """A user ended the task, or its worker is shutting down; if tries are left, the next one starts from scratch."""


class CatalogOperator(TextTemplates, PolicedRetries, BaseOperator):
    """Base of the operators that access the tables of a connection.

    :param dynamic_table_conn_id: the connection.
    """

    def __init__(self, *, dynamic_table_conn_id: str = DynamicTableHook.default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dynamic_table_conn_id = dynamic_table_conn_id

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The hook that opens the tables."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def on_kill(self) -> None:
        """End ``execute`` by an exception, so that it deletes uncommitted files, releases its lease and stops Spark.

        Airflow calls this from a signal handler, would then resume ``execute``, and kills the process seconds later.
        """
        if isinstance(sys.exc_info()[1], AirflowTaskTimeout):
            return  # the timeout has ended ``execute`` already
        message = f"Task {self.task_id} was ended before it was done"
        raise TaskEndedError(message)


class TableOperator(CatalogOperator):
    """Base of the operators that work on one table.

    :param table: ``database.table``. (templated)
    :param dynamic_table_conn_id: the connection.
    """

    template_fields: Sequence[str] = ("table",)
    # Whether the operator emits asset events of the table.
    announces: ClassVar[bool] = False

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**with_table_events(kwargs) if self.announces else kwargs)
        self.table = table

    def get_openlineage_facets_on_start(self) -> Any:
        """Return the table for OpenLineage; called only if its provider is installed."""
        return self._lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return the table and the new snapshot for OpenLineage."""
        result = task_instance.xcom_pull(task_ids=self.task_id, map_indexes=task_instance.map_index)
        return self._lineage(result.get("version") if isinstance(result, dict) else None)

    def _lineage(self, version: int | None) -> Any:
        if not self.announces:
            return table_lineage(self.hook, reads=[self.table])
        return table_lineage(self.hook, writes=[self.table], version=version)
