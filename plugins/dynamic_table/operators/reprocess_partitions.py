"""Writes partitions anew from their source."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowSkipException

from dynamic_table.commit_identity import commit_identity
from dynamic_table.dotted_callable import load_callable
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.partition_argument import checked_partitions, partition_label
from dynamic_table.rendered_argument import checked_choice, checked_flag, checked_mapping, checked_text
from dynamic_table.table_branch import aspect_of, load_branch
from dynamic_table.table_events import announce

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from airflow.sdk import Context

    from storage_lib import DynamicTable

__all__ = ["ReprocessPartitionsOperator"]

ON_EMPTY = ("fail", "skip", "clear")


class ReprocessPartitionsOperator(TableOperator):
    """Replaces partitions by what a callable returns for them, each in one commit.

    Whatever a stream commits to a partition afterwards wins over the rows written here. By default the log hears
    nothing of it.

    :param partitions: the partitions, ``[{column: value}, ...]``. (templated)
    :param rows: the source, ``package.module:function``, called as ``function(partition, **rows_kwargs)``; it returns
        an Arrow table with the table's columns. (templated)
    :param rows_kwargs: keyword arguments for it. (templated)
    :param change_tracking: write the difference between old and new content into the log as well. (templated)
    :param on_empty: what to do with a partition for which the source has no rows: ``fail`` and ``skip`` leave it as
        it is, ``clear`` empties it; the task itself is skipped when all its partitions are. (templated)
    :param branch: write to this branch, which has to be there; None: to the table itself. (templated)
    """

    template_fields: Sequence[str] = (
        "table",
        "partitions",
        "rows",
        "rows_kwargs",
        "change_tracking",
        "on_empty",
        "branch",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"partitions": "json", "rows_kwargs": "json"}
    announces = True
    ui_color = "#dde8f4"

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, Any]] | str,
        rows: str,
        rows_kwargs: Mapping[str, Any] | str | None = None,
        change_tracking: bool | str = False,
        on_empty: str = "fail",
        branch: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.rows = rows
        self.rows_kwargs: Any = rows_kwargs
        self.change_tracking = change_tracking
        self.on_empty = on_empty
        self.branch = branch

    @cached_property
    def dynamic_table(self) -> DynamicTable:
        """The table or its branch, opened once the source has rows for it."""
        return load_branch(self.hook, self.table, self.branch)

    def execute(self, context: Context) -> dict[str, Any]:
        """Replace them and return the last snapshot's id, the partitions and the number of rows."""
        partitions = checked_partitions(self.partitions)
        change_tracking = checked_flag(self.change_tracking, "change_tracking")
        checked_choice(self.on_empty, "on_empty", ON_EMPTY)
        replaced, version, row_count = [], None, 0
        with commit_identity(context) as identity:
            for part, partition in enumerate(partitions):
                rows = self._rows_of(partition)
                if rows is None:
                    continue
                snapshot = self.dynamic_table.overwrite(
                    rows, partition=partition, change_tracking=change_tracking, **identity.arguments(part)
                )
                replaced.append(partition)
                version = snapshot.id if snapshot else version
                row_count += rows.num_rows
                self.log.info("%s now holds %d rows", partition_label([partition]), rows.num_rows)
        if not replaced:
            raise AirflowSkipException(f"{self.rows} has no rows for {partition_label(partitions)} of {self.table}.")
        return announce(
            context,
            table=self.table,
            op="reprocess",
            version=version,
            partitions=replaced,
            aspect=aspect_of(self.branch),
            rows=row_count,
        )

    def _rows_of(self, partition: Mapping[str, str]) -> pa.Table | None:
        """Ask the source; None to leave the partition as it is. It becomes empty only if that was asked for."""
        import pyarrow as pa

        from storage_lib.errors import InvalidInputError

        source = load_callable(checked_text(self.rows, "rows"))
        rows = source(partition, **checked_mapping(self.rows_kwargs, "rows_kwargs"))
        if not isinstance(rows, pa.Table):
            message = f"{self.rows} returned a {type(rows).__name__}; it has to return a pyarrow.Table."
            raise InvalidInputError(message)
        if rows.num_rows or self.on_empty == "clear":
            return rows
        message = f"{self.rows} has no rows for {partition_label([partition])} of {self.table}, so it stays as it is."
        if self.on_empty == "skip":
            self.log.warning(message)
            return None
        raise InvalidInputError(f"{message} Drop the partition, or set on_empty to 'skip' or 'clear'.")
