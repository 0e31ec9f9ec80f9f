"""Checks a table's content at one snapshot with Great Expectations."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.partition_argument import checked_partition, partition_label
from dynamic_table.arguments.partition_listing import partition_filter
from dynamic_table.arguments.rendered_argument import checked_count, checked_names, is_nothing
from dynamic_table.arguments.table_branch import aspect_of, load_branch
from dynamic_table.events.lineage import table_lineage
from dynamic_table.events.progress_log import progress_in_log
from dynamic_table.operators.engine_operator import ENGINE_FIELDS, EngineOperator
from dynamic_table.quality.data_docs import DataDocs, DataDocsLink, docs_root
from dynamic_table.quality.data_quality import check_expectations
from dynamic_table.quality.expectation_suites import expectations_of
from dynamic_table.table_events import announce
from dynamic_table.versions.sdk_exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from airflow.sdk import Context
    from pyspark.sql import DataFrame

    from storage_lib import DynamicTable

__all__ = ["DataQualityError", "ValidateTableOperator"]

LINES_MAX = 20  # lines that the table's page shows


class DataQualityError(AirflowFailException):
    """A critical expectation was not met; the same snapshot would fail again, so the task is not retried."""


class ValidateTableOperator(EngineOperator):
    """Fails without retries if a critical expectation is not met; failures of lower severity are only counted.

    Rows are read into this process's memory, or by Spark if they are too large (``engine``).
    Results are stored per snapshot, with Great Expectations' pages; the task's link *Data Docs* opens them.

    :param expectations: plain data, ``[{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"},
        "severity": "critical"}, ...]``; severity ``critical`` (default), ``warning`` or ``info``. Or the path of a file
        with them, relative to the DAG's folder, or ``package.module:function``. None:
        ``expectations/<db>.<table>.yaml`` in the DAG's folder. (templated)
    :param partition: ``{column: value}`` of the partition to check; None: the whole table. (templated)
    :param columns: read only these columns; None: all. (templated)
    :param snapshot_id: check this snapshot; None: the newest. (templated)
    :param branch: check this branch; None: the table itself. (templated)
    """

    template_fields: Sequence[str] = (
        "table", "expectations", "partition", "columns", "snapshot_id", "branch", *ENGINE_FIELDS,
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "expectations": "json",
        "partition": "json",
        "spark_conf": "json",
    }
    announces = True
    operator_extra_links = (DataDocsLink(),)
    ui_color = "#f6f0d4"

    def __init__(
        self,
        *,
        expectations: Sequence[Mapping[str, Any]] | str | None = None,
        partition: Mapping[str, Any] | str | None = None,
        columns: Sequence[str] | None = None,
        snapshot_id: int | str | None = None,
        branch: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.expectations = expectations
        self.partition = partition
        self.columns = columns
        self.snapshot_id = snapshot_id
        self.branch = branch
        self.docs_url: str | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Read one snapshot, check it, and return the counts; a DataQualityError lists the unmet expectations."""
        from storage_lib.errors import NotFoundError

        table = load_branch(self.hook, self.table, self.branch)
        partition = checked_partition(self.partition) if self.partition else None
        newest = table.new_read().plan().snapshot
        snapshot_id = self._chosen_snapshot() or (newest.id if newest else None)
        with self._rows(table, partition, snapshot_id) as (rows, row_count):
            if partition and not row_count:
                message = f"{table.name} has no rows in {partition_label([partition])} at snapshot {snapshot_id}."
                raise NotFoundError(message)
            if not row_count:
                self.log.warning("%s is empty: all expectations of its values are met", table.name)
            expectations = expectations_of(self.expectations, self.table, Path(context["dag"].folder))
            docs = DataDocs(root=docs_root(self.hook), table=table.name)
            report = check_expectations(rows, expectations, docs=docs, run_name=f"snapshot-{snapshot_id}")
        page = docs.page_of(f"snapshot-{snapshot_id}")
        self._link(context, docs, page)
        facts: dict[str, Any] = {"rows": row_count, "checked": report.checked, "failed": report.failed}
        docs.note_last(
            {
                "snapshot_id": snapshot_id,
                "millis": int(time.time() * 1000),
                "partition": partition,
                "lines": list(report.lines[:LINES_MAX]),
                "page": page,
                **facts,
            }
        )
        for line in report.lines:
            self.log.warning(line)
        if report.failed["critical"]:
            message = f"{table.name} at snapshot {snapshot_id} fails its expectations:\n" + "\n".join(report.lines)
            raise DataQualityError(message)
        return announce(
            context,
            table=self.table,
            op="validate",
            version=snapshot_id,
            partitions=[partition] if partition else [],
            aspect=aspect_of(self.branch, "quality"),
            **facts,
            docs=self.docs_url,
        )

    @contextmanager
    def _rows(
        self, table: DynamicTable, partition: Mapping[str, Any] | None, snapshot_id: int | None
    ) -> Iterator[tuple[pa.Table | DataFrame, int]]:
        """Yield the rows to check and their number: an Arrow table, or a data frame while its session lasts."""
        where = partition_filter(table, partition) if partition else None
        columns = checked_names(self.columns, "columns") or None
        splits = table.new_read(filter=where, snapshot_id=snapshot_id).plan().splits()
        size = sum(file.file_size for split in splits for file in split.files)
        if not self.uses_spark(size):
            with progress_in_log(self.log):
                rows = table.to_arrow(columns=columns, filter=where, snapshot_id=snapshot_id)
            yield rows, rows.num_rows
            return
        from storage_lib.spark import read

        with self.spark() as spark:
            frame = read(spark, table, columns=columns, filter=where, snapshot_id=snapshot_id)
            yield frame, frame.count()

    def _lineage(self, version: int | None) -> Any:  # noqa: ARG002  a validation creates no snapshot
        return table_lineage(self.hook, reads=[self.table])

    def _link(self, context: Context, docs: DataDocs, page: str | None) -> None:
        """Store the link to the page before the result is judged, so that a failing task has it as well."""
        if page is not None:
            self.docs_url = docs.url_of(page, self.dynamic_table_conn_id)
            context["ti"].xcom_push(key=self.operator_extra_links[0].xcom_key, value=self.docs_url)

    def _chosen_snapshot(self) -> int | None:
        return None if is_nothing(self.snapshot_id) else checked_count(self.snapshot_id, "snapshot_id", least=1)
