"""Passes a table's changes of a run's interval to a Python function, and optionally appends its result to a table."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.interval_changes import interval_changes, run_interval
from dynamic_table.arguments.partition_argument import checked_partition
from dynamic_table.arguments.rendered_argument import (
    checked_choice,
    checked_mapping,
    checked_moment,
    checked_number,
    checked_text,
    is_nothing,
)
from dynamic_table.events.lineage import table_lineage
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.allowed_callable import load_allowed_callable
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow.sdk import Context

__all__ = ["ProcessChangesOperator"]

MODES = ("net", "every")


class ProcessChangesOperator(TableOperator):
    """Reads the changes committed in the run's interval, ``[start, end)``, and calls a function with them.

    The snapshot range is stored with the task, so a retry or clear of the run reads the same changes. With ``into``
    the rows that the function returns are appended to a table, in one commit that a retry does not repeat. Give that
    table a primary key, so that a cleared run replaces its earlier rows.

    :param process: ``package.module:function``, called as ``function(changes, **process_kwargs)`` with a
        ``pyarrow.RecordBatchReader`` of the table's columns and, last, the row kind (``+I``, ``-U``, ``+U``, ``-D``).
        It returns the task's result, which has to be JSON, or with ``into`` an Arrow table or None. (templated)
    :param process_kwargs: keyword arguments of ``process``. (templated)
    :param start: the interval's start, with its zone; None: the run's data interval or partition date. (templated)
    :param end: the interval's end, given together with ``start``. (templated)
    :param partition_hours: length of the interval that starts at a partition date, in a partitioned DAG. (templated)
    :param partition: ``{column: value}`` of every partition column: only changes of that partition, such as
        ``{"day": "{{ dag_run.partition_key }}"}``. (templated)
    :param mode: ``net``: at most one change per key; ``every``: the changes of each commit. (templated)
    :param into: the table that the function's rows are appended to. (templated)
    """

    template_fields: Sequence[str] = (
        "table",
        "process",
        "process_kwargs",
        "start",
        "end",
        "partition_hours",
        "partition",
        "mode",
        "into",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"process_kwargs": "json", "partition": "json"}
    announces = True
    ui_color = "#dde8f4"

    def __init__(
        self,
        *,
        process: str,
        process_kwargs: Mapping[str, Any] | str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        partition_hours: float | str = 24,
        partition: Mapping[str, Any] | str | None = None,
        mode: str = "net",
        into: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.process = process
        self.process_kwargs: Any = process_kwargs
        self.start: Any = start
        self.end: Any = end
        self.partition_hours = partition_hours
        self.partition = partition
        self.mode = mode
        self.into = into

    def execute(self, context: Context) -> dict[str, Any]:
        """Call the function with the changes; return the snapshot range and the function's result."""
        checked_choice(self.mode, "mode", MODES)
        process = load_allowed_callable(checked_text(self.process, "process"))
        arguments = checked_mapping(self.process_kwargs, "process_kwargs")
        partition = None if is_nothing(self.partition) else checked_partition(self.partition)
        changes = interval_changes(context, self.hook.load_table(self.table), interval=self._interval(context))
        self.log.info("Changes of %s: snapshots after %s up to %s", self.table, *changes.spark_range.split(","))
        reader = changes.read(mode=self.mode, partition=partition)
        facts: dict[str, Any] = {
            "changes_of": self.table,
            "after_snapshot": changes.start_snapshot_id,
            "up_to_snapshot": changes.end_snapshot_id,
        }
        if is_nothing(self.into):
            result = process(reader, **arguments)
            return {"table": self.table, "op": "process_changes", **facts, "result": result}
        into = checked_text(self.into, "into")
        with commit_identity(context) as identity:
            rows = _checked_rows(process(reader, **arguments), self.process)
            snapshot = None
            if rows is not None:
                snapshot = self.hook.load_table(into).append(rows, **identity.arguments())
        facts["rows"] = 0 if rows is None else rows.num_rows
        version = snapshot.id if snapshot else None
        return announce(context, table=into, op="process_changes", version=version, **facts)

    def _lineage(self, version: int | None) -> Any:
        writes = [] if is_nothing(self.into) else [str(self.into)]
        return table_lineage(self.hook, reads=[self.table], writes=writes, version=version)

    def _interval(self, context: Context) -> tuple[datetime, datetime]:
        from datetime import UTC, datetime

        from storage_lib.errors import InvalidInputError

        if is_nothing(self.start) and is_nothing(self.end):
            hours = checked_number(self.partition_hours, "partition_hours")
            return run_interval(context, partition_period=timedelta(hours=hours))
        start, end = (
            datetime.fromtimestamp(checked_moment(value, name) / 1000, UTC)
            for value, name in ((self.start, "start"), (self.end, "end"))
        )
        if start > end:
            message = f"interval {start.isoformat()} to {end.isoformat()} ends before it starts; swap start and end"
            raise InvalidInputError(message)
        return start, end


def _checked_rows(rows: Any, source: str) -> Any:
    import pyarrow as pa

    from storage_lib.errors import InvalidInputError

    if rows is not None and not isinstance(rows, pa.Table):
        message = f"{source} returned a {type(rows).__name__}; with into= it has to return a pyarrow.Table or None."
        raise InvalidInputError(message)
    return rows
