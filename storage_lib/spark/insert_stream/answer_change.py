"""The change of a query's answer between two moments of the tables that it reads, as rows with weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Moment, of_one_moment
from storage_lib.materialized.sources.full_reasons import why_full
from storage_lib.materialized.sources.source_delta import TableDelta, all_few, source_delta
from storage_lib.materialized.sources.source_positions import SourcePosition, position_of, source_name
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.spark.engine.computed_once import computed_steps
from storage_lib.spark.engine.source_frames import delta_frame, source_rows
from storage_lib.spark.engine.source_views import shared_prefix, source_views
from storage_lib.spark.engine.weighted_frames import net_rows, weighted
from storage_lib.spark.insert_stream.commit_source import Positions, TablePosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable


@contextmanager
def answer_change(
    spark: SparkSession, bound: BoundQuery, before: Positions, after: Positions
) -> Iterator[DataFrame | None]:
    """Yield the rows of the query that were added and removed, with ``_weight``; None if no row can have changed.

    If changes of a source between both moments are not known, for example after an overwrite without change tracking,
    the answers of both moments are computed in full and compared.

    Raises ``InvalidInputError`` if a source was dropped and created again or rolled back to before ``before``, and
    ``SnapshotExpiredError`` if a snapshot has expired: the answer that was written can't be computed any more.
    """
    names = bound.sources.keys()
    tables = bound.tables
    ends = {name: _checked(name, tables[name], after.get(name)) for name in names}
    starts = {name: _checked(name, tables[name], before.get(name)) for name in names}
    deltas: dict[str, TableDelta] = {}
    # A source may have been without a snapshot before; the answer over no rows was written all the same.
    is_first = not before
    if not is_first and _is_known(bound, before, ends):
        deltas = {
            name: source_delta(source, needed_columns(bound.compiled, name, source), starts[name], ends[name])
            for name, source in tables.items()
            if starts[name] != ends[name]
        }
        if not any(each.row_count for each in deltas.values()):
            yield None
            return

    def frame_of(name: str, moment: Moment) -> DataFrame:
        if moment is Moment.DELTA:
            return delta_frame(spark, deltas[name])
        source, at = tables[name], starts if moment is Moment.BEFORE else ends
        return source_rows(spark, source, needed_columns(bound.compiled, name, source), at[name])

    with source_views(spark, system_environment().new_name(), frame_of) as views:
        if deltas:
            changed = {name: each for name, each in deltas.items() if each.row_count}
            seen = of_one_moment(views, names - changed.keys())
            steps = bound.compiled.delta(
                seen,
                changed.keys(),
                may_read_result=False,
                are_few=all_few(changed),
                prefix=shared_prefix(),
            )
            if steps is None:
                yield None
                return
            with computed_steps(spark, steps) as rows:
                yield None if rows is None else net_rows(rows)
            return
        new = weighted(spark.sql(bound.compiled.full(views, Moment.AFTER)), 1)
        if is_first:
            # The sums of later changes compare rows as groups do, for which 0.0 and -0.0 are equal.
            yield net_rows(new)
            return
        old = weighted(spark.sql(bound.compiled.full(views, Moment.BEFORE)), -1)
        yield net_rows(new.union(old))


def _checked(name: str, source: DynamicTable, at: TablePosition | None) -> int:
    """Return the id of the snapshot (0: the empty table); raise if it is not the one that the stream has planned."""
    if at is None or at.position.snapshot_id == 0:
        return 0
    snapshot_id = at.position.snapshot_id
    remedy = (
        "The rows that the stream has written can't be compared with the present ones: start it with a new "
        "checkpoint, into an empty table"
    )
    if at.table != source_name(source):
        message = f"table {name} was dropped and created again while a stream was reading it. {remedy}"
        raise InvalidInputError(message)
    expired = f"snapshot {snapshot_id} of {name}, which a stream was reading, has expired or was rolled back. {remedy}"
    if snapshot_id < (source.inspect.earliest_snapshot_id() or 0):
        raise SnapshotExpiredError(expired)
    try:
        found = position_of(source.inspect.snapshot(snapshot_id))
    except (SnapshotExpiredError, NotFoundError) as error:
        raise SnapshotExpiredError(expired) from error
    if found != at.position:
        message = (
            f"table {name} was rolled back: snapshot {snapshot_id}, which a stream was reading, is another. {remedy}"
        )
        raise InvalidInputError(message)
    return snapshot_id


def _is_known(bound: BoundQuery, before: Positions, ends: dict[str, int]) -> bool:
    for name, source in bound.tables.items():
        at = before.get(name)
        position = SourcePosition(0) if at is None else at.position
        if why_full(name, source, needed_columns(bound.compiled, name, source), position, ends[name]) is not None:
            return False
    return True
