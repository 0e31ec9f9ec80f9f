"""Recomputes partitions from their source and overwrites them."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.partition_argument import checked_partitions, partition_label
from dynamic_table.arguments.partition_listing import check_partitioned_by, stored_row_count
from dynamic_table.arguments.rendered_argument import (
    checked_choice,
    checked_flag,
    checked_mapping,
    checked_text,
    is_nothing,
)
from dynamic_table.arguments.table_branch import aspect_of, load_branch
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.engine_operator import ENGINE_FIELDS, EngineOperator
from dynamic_table.policies.allowed_callable import load_allowed_callable
from dynamic_table.policies.commit_identity import commit_identity
from dynamic_table.table_events import announce
from dynamic_table.versions.sdk_exceptions import AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context
    from pyspark.sql import SparkSession

    from storage_lib import DynamicTable

__all__ = ["ReprocessPartitionsOperator"]

ON_EMPTY = ("fail", "skip", "clear")


class ReprocessPartitionsOperator(EngineOperator):
    """Replaces each partition, in one commit, by the rows that a function or query returns for it.

    Later commits of a stream to the partition override the rows written here. By default the log receives no changes.

    :param partitions: the partitions, ``[{column: value}, ...]``. (templated)
    :param rows: the source, ``package.module:function``, called as ``function(partition, **rows_kwargs)``; it returns
        an Arrow table with the table's columns. With ``engine="spark"`` it is also called with ``spark=`` and returns
        a Spark data frame. (templated)
    :param query: instead, a SELECT over the connection's tables, run by Spark; ``{column}`` in it is replaced by the
        partition's value, quoted. (templated)
    :param rows_kwargs: keyword arguments of ``rows``. (templated)
    :param change_tracking: also write the difference between old and new content into the log. (templated)
    :param on_empty: if the source has no rows for a partition: ``fail`` and ``skip`` do not change it, ``clear``
        empties it. The task is skipped if all its partitions are. (templated)
    :param branch: write to this existing branch; None: to the table itself. (templated)
    """

    template_fields: Sequence[str] = (
        "table",
        "partitions",
        "rows",
        "query",
        "rows_kwargs",
        "change_tracking",
        "on_empty",
        "branch",
        *ENGINE_FIELDS,
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "partitions": "json",
        "rows_kwargs": "json",
        "query": "sql",
        "spark_conf": "json",
    }
    announces = True
    ui_color = "#dde8f4"

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, Any]] | str,
        rows: str | None = None,
        query: str | None = None,
        rows_kwargs: Mapping[str, Any] | str | None = None,
        change_tracking: bool | str = False,
        on_empty: str = "fail",
        branch: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.rows = rows
        self.query = query
        self.rows_kwargs: Any = rows_kwargs
        self.change_tracking = change_tracking
        self.on_empty = on_empty
        self.branch = branch

    @cached_property
    def dynamic_table(self) -> DynamicTable:
        """The table or its branch."""
        return load_branch(self.hook, self.table, self.branch)

    def execute(self, context: Context) -> dict[str, Any]:
        """Replace the partitions and return the last snapshot's id, the partitions and the number of rows."""
        partitions = checked_partitions(self.partitions)
        change_tracking = checked_flag(self.change_tracking, "change_tracking")
        checked_choice(self.on_empty, "on_empty", ON_EMPTY)
        self._check_source()
        # Check before the source runs, which may take hours.
        for partition in partitions:
            check_partitioned_by(self.dynamic_table, partition)
        by_spark = not is_nothing(self.query) or self.uses_spark(0)
        replaced: list[Mapping[str, str]] = []
        version: int | None = None
        row_count = 0
        with (
            commit_identity(context) as identity,
            progress_in_log(self.log),
            self.spark() if by_spark else nullcontext() as spark,
        ):
            for part, partition in enumerate(partitions):
                if (own := identity.own_commit(self.dynamic_table, part)) is not None:
                    self.log.info("An earlier try has replaced %s", partition_label([partition]))
                    replaced.append(partition)
                    version = max(version or 0, own.id)
                    row_count += stored_row_count(self.dynamic_table, partition)
                    continue
                arguments: dict[str, Any] = {"change_tracking": change_tracking, **identity.arguments(part)}
                done = (
                    self._replace(partition, arguments)
                    if spark is None
                    else self._by_spark(spark, partition, arguments)
                )
                if done is None:
                    continue
                snapshot, count = done
                replaced.append(partition)
                version = snapshot.id if snapshot else version
                row_count += count
                self.log.info("%s now holds %d rows", partition_label([partition]), count)
        if not replaced:
            raise AirflowSkipException(f"{self._source} has no rows for {partition_label(partitions)} of {self.table}.")
        return announce(
            context,
            table=self.table,
            op="reprocess",
            version=version,
            partitions=replaced,
            aspect=aspect_of(self.branch),
            rows=row_count,
        )

    @property
    def _source(self) -> str:
        return "the query" if is_nothing(self.rows) else str(self.rows)

    def _check_source(self) -> None:
        from storage_lib.errors import InvalidInputError

        if is_nothing(self.rows) == is_nothing(self.query):
            message = f"Give either rows ({self.rows!r}) or query ({self.query!r}) as the source of {self.table}."
            raise InvalidInputError(message)
        if not is_nothing(self.rows):
            load_allowed_callable(checked_text(self.rows, "rows"))

    def _replace(self, partition: Mapping[str, str], arguments: Mapping[str, Any]) -> tuple[Any, int] | None:
        """Overwrite a partition with the function's rows; return the snapshot and row count, None if unchanged."""
        import pyarrow as pa

        rows = self._called(partition)
        if not isinstance(rows, pa.Table):
            raise self._wrong_rows(rows, "a pyarrow.Table")
        if not rows.num_rows and not self._may_be_emptied(partition):
            return None
        return self.dynamic_table.overwrite(rows, partition=partition, **arguments), rows.num_rows

    def _by_spark(
        self, spark: SparkSession, partition: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> tuple[Any, int] | None:
        """Overwrite a partition with a data frame, which is computed once and cached until it is written."""
        from pyspark.sql import DataFrame

        from storage_lib.spark import write

        rows = self._called(partition, spark=spark) if is_nothing(self.query) else self._asked(spark, partition)
        if not isinstance(rows, DataFrame):
            raise self._wrong_rows(rows, "a Spark data frame")
        persisted = rows.persist()
        try:
            count = persisted.count()
            if not count and not self._may_be_emptied(partition):
                return None
            table = self.dynamic_table
            return write(persisted, table, mode="overwrite", partition=partition, **arguments), count
        finally:
            persisted.unpersist()

    def _called(self, partition: Mapping[str, str], **more: Any) -> Any:
        source = load_allowed_callable(checked_text(self.rows, "rows"))
        return source(partition, **more, **checked_mapping(self.rows_kwargs, "rows_kwargs"))

    def _asked(self, spark: SparkSession, partition: Mapping[str, str]) -> Any:
        from storage_lib.errors import InvalidInputError
        from storage_lib.sql import Session, parse
        from storage_lib.sql.statements.row_statements import Select

        text = checked_text(self.query, "query")
        for column, value in partition.items():
            text = text.replace(f"{{{column}}}", "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'")
        if not isinstance(parse(text), Select):
            message = f"query is not a SELECT: {text!r}"
            raise InvalidInputError(message)
        # Restricted, because the query may come from a form.
        with Session(spark, self.hook.get_conn(), restricted=True) as session:
            return session.execute(text).dataframe

    def _wrong_rows(self, rows: Any, wanted: str) -> Exception:
        from storage_lib.errors import InvalidInputError

        return InvalidInputError(f"{self._source} returned a {type(rows).__name__}; it has to return {wanted}.")

    def _may_be_emptied(self, partition: Mapping[str, str]) -> bool:
        """Handle a partition without rows by ``on_empty``; returns whether to empty it."""
        from storage_lib.errors import InvalidInputError

        if self.on_empty == "clear":
            return True
        label = partition_label([partition])
        message = f"{self._source} has no rows for {label} of {self.table}, so it was not changed."
        if self.on_empty == "skip":
            self.log.warning(message)
            return False
        raise InvalidInputError(f"{message} Drop the partition, or set on_empty to 'skip' or 'clear'.")
