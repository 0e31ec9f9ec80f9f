"""Write the difference between a materialized table and its query's answer, which Spark computes, as one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.materialized.commit.refresh_commit import begin_refresh
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.spark.engine.weighted_frames import rows_with_kinds
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.writing.commit_rows import commit_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.materialized.commit.refresh_commit import RefreshCommit
    from storage_lib.table.dynamic_table import DynamicTable


def commit_difference_of(
    df: DataFrame, table: DynamicTable, commit: RefreshCommit, *, are_few: bool = False
) -> Snapshot | None:
    """Write rows of the table with weights (``_weight``), equal rows once, as one commit with the positions.

    The rows are computed before the table's lease is acquired. ``are_few`` as for ``commit_rows``. Returns and raises
    as ``commit_difference`` does.
    """
    columns = [quoted(field.name) for field in table.schema.fields]
    return commit_rows(
        rows_with_kinds(df.select(*columns, WEIGHT), table.options.row_kind_field),
        table,
        lambda: begin_refresh(table, commit),
        commit.identifier,
        adds_up=bool(table.schema.primary_keys),
        sources=commit.sources if commit.moves else (),
        watermark=commit.watermark,
        are_few=are_few,
    )
