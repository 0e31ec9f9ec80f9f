"""Batch write as one Spark job: its tasks write files and open log transactions, and the driver commits.

On request, the driver writes a few rows itself: a job with Python tasks takes longer.

``format("dynamic_table")`` does the same through Spark's data source API, which finds the source, plans the write and
commits it in three more Python processes. A session starts each of them cold, a second or more one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.accumulators import AccumulatorParam
from pyspark.serializers import CPickleSerializer

from storage_lib.catalog.table_cache import key_of
from storage_lib.spark.tasks.driver_lease import give_up
from storage_lib.spark.tasks.table_tasks import TaskMessage, commit_tasks, write_task
from storage_lib.spark.types.unscaled_decimals import with_decimals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.spark.writing.computed_input import ComputedRows
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceRange
    from storage_lib.table.protocol.write_context import WriteContext

_MESSAGE = "message"
_ROWS_HERE_MAX = 10_000
_BYTES_HERE_MAX = 4 << 20
_PICKLE: Any = CPickleSerializer()


class _Collected(AccumulatorParam[list[bytes]]):
    """Messages of the tasks that have finished, also of a job that then fails."""

    def zero(self, value: list[bytes]) -> list[bytes]:  # noqa: ARG002  Spark gives the value of the driver
        """Return an empty list; a task starts with it."""
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802  Spark's name
        """Append the messages of a task."""
        value1.extend(value2)
        return value1


def run_write(
    rows: ComputedRows,
    table: DynamicTable,
    write_context: WriteContext,
    commit_identifier: int,
    *,
    adds_up: bool = False,
    sources: Sequence[SourceRange] = (),
    watermark: int | None = None,
    may_collect: bool = False,
) -> Snapshot | None:
    """Write the rows, and commit them as one snapshot; None if ``WriteBuilder.commit`` returns none.

    With ``may_collect``, the driver writes the rows if they are known to be few.

    ``write_context`` was begun for this write. ``adds_up`` as for ``write_task``; ``sources`` and ``watermark`` as for
    ``WriteBuilder.commit``. In any case its lease is released; if a task fails permanently, the
    files of the others are deleted. Not for Spark Connect, whose client cannot reach the server's tasks.
    """
    key = key_of(table)
    decimals = dict(rows.decimals)
    df, names = _with_plain_names(rows.df)
    finished = rows.df.sparkSession.sparkContext.accumulator([], _Collected())

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        restored = (with_decimals(batch.rename_columns(names), decimals) for batch in batches)
        message = _PICKLE.dumps(write_task(key, write_context, restored, adds_up=adds_up))
        finished.add([message])
        yield pa.RecordBatch.from_pydict({_MESSAGE: pa.array([message], pa.binary())})

    def write_here() -> TaskMessage:
        batches = (with_decimals(batch.rename_columns(names), decimals) for batch in df.toArrow().to_batches())
        return write_task(key, write_context, batches, adds_up=adds_up)

    lease = write_context.lease
    messages: list[TaskMessage] = []
    try:
        with nullcontext() if lease is None else table.new_write().leases.beating(lease):
            if may_collect and _is_small(rows):
                messages.append(write_here())
            else:
                pickled = df.mapInArrow(write, f"{_MESSAGE} BINARY").collect()
                messages += [_message(row[_MESSAGE]) for row in pickled]
    except BaseException:
        # None stands for the tasks that have not finished: no commit was begun.
        give_up(table, write_context.commit_user, [*messages, *map(_message, finished.value), None], write_context)
        raise
    finally:
        # pyspark keeps each accumulator as long as the process lives.
        finished.value.clear()
    return commit_tasks(table, write_context, messages, commit_identifier, sources=sources, watermark=watermark)


def collected(df: DataFrame) -> pa.Table | None:
    """Return the rows, which are few; None if that fails, by an error of the query or the size of the rows.

    Other actions raise errors of a query as such, which ``toArrow`` hides in one of the connection. None too for a
    VARIANT, of which Spark gives the driver other Arrow types than its tasks.
    """
    if _has_variant(df):
        return None
    try:
        return df.toArrow()
    except Py4JJavaError:
        return None


def _is_small(rows: ComputedRows) -> bool:
    """Return whether the rows are known to be few, and fit into the driver easily."""
    if rows.row_count is None or rows.size_bytes is None or _has_variant(rows.df):
        return False
    return rows.row_count <= _ROWS_HERE_MAX and rows.size_bytes <= _BYTES_HERE_MAX


def _has_variant(df: DataFrame) -> bool:
    return "variant" in df.schema.simpleString()


def _with_plain_names(df: DataFrame) -> tuple[DataFrame, list[str]]:
    """Return the rows with columns that pyspark finds by name, and the columns' own names.

    ``mapInArrow`` looks up each column by its name, where a dot leads to a field, a backtick quotes, and case is
    ignored. Other names stay: a projection copies each row.
    """
    names = df.columns
    if len({name.lower() for name in names}) == len(names) and not any("." in each or "`" in each for each in names):
        return df, names
    return df.toDF(*[f"column{place}" for place in range(len(names))]), names


def _message(pickled: bytes) -> TaskMessage:
    message: TaskMessage = _PICKLE.loads(bytes(pickled))
    return message
