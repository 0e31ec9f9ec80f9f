"""``create_auto_cdc_flow``: apply the events of a CDC source to a table, in a Spark Declarative Pipeline.

Events may arrive in any order. The table orders them by its sequence field, and with ``compaction.keep-deletes`` a
deletion stays in its files, so that an older event which arrives later does not bring the row back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import MergeEngine, SortOrder
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_KEEP_DELETES = "compaction.keep-deletes"
_DELETION, _UPSERT = "-D", "+I"


def create_auto_cdc_flow(
    table: DynamicTable,
    source: str,
    keys: Sequence[str],
    sequence_by: str | Column,
    apply_as_deletes: str | Column | None = None,
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: int | str | None = None,
    name: str | None = None,
    *,
    spark_conf: Mapping[str, str] | None = None,
) -> None:
    """Define a flow of the pipeline that keeps the newest row of each key of a CDC source in ``table``.

    The counterpart of ``pyspark.pipelines.create_auto_cdc_flow`` for tables of this library, with its parameters.
    ``source`` is a streaming dataset of the pipeline. ``keys`` are the table's primary key. ``sequence_by``, an SQL
    expression or a column, orders the events of a key; its value is stored in the table's ``sequence.field``, and null
    is the oldest. ``apply_as_deletes`` is a condition on events that delete their row; null counts as false. By
    default, events have all columns of the table; with ``column_list`` only these, with ``except_column_list`` all
    others, and the rest becomes null. ``name`` is the name of the flow and its sink; default: the table's name.

    The table has ``merge-engine=deduplicate`` and one column as ``sequence.field``; for ``apply_as_deletes`` also
    ``compaction.keep-deletes=true``. Only SCD type 1 is supported. Raises ``InvalidInputError``, with the remedy, for a
    table or columns that do not fit.
    """
    SparkFeature.PIPELINES.require(f"table {table.name}", "Write the events with write_stream(...)")
    from pyspark import pipelines
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sql

    _check_table(table, keys, deletes=apply_as_deletes is not None)
    if str(stored_as_scd_type or 1) != "1":
        message = (
            f"table {table.name}: stored_as_scd_type {stored_as_scd_type!r} is not supported; a table keeps one row of "
            "each key (1). Read its earlier rows by snapshot, tag or time"
        )
        raise InvalidInputError(message)
    (sequence,) = table.options.sequence_field
    names = _columns(table, column_list, except_column_list)
    flow = name or table.name.replace(".", "_")

    def changes() -> DataFrame:
        order = sql.expr(sequence_by) if isinstance(sequence_by, str) else sequence_by
        columns = [order.alias(each) if each == sequence else quoted(each) for each in names]
        if apply_as_deletes is not None:
            deleted = sql.expr(apply_as_deletes) if isinstance(apply_as_deletes, str) else apply_as_deletes
            kind = sql.when(deleted, sql.lit(_DELETION)).otherwise(sql.lit(_UPSERT))
            columns.append(kind.alias(table.options.row_kind_field))
        return SparkSession.active().readStream.table(source).select(*columns)

    pipelines.create_sink(flow, statement_options.SOURCE_NAME, statement_options.options_of(table))
    pipelines.append_flow(target=flow, name=flow, spark_conf=dict(spark_conf or {}))(changes)


def _check_table(table: DynamicTable, keys: Sequence[str], *, deletes: bool) -> None:
    options, primary_keys = table.options, table.schema.primary_keys
    problem = None
    if not primary_keys or set(keys) != set(primary_keys):
        problem = f"keys are {', '.join(keys)}, but its primary key is ({', '.join(primary_keys)}); they have to agree"
    elif options.merge_engine is not MergeEngine.DEDUPLICATE or len(options.sequence_field) != 1:
        problem = (
            "events that arrive late need an order: create it with merge-engine=deduplicate and sequence.field=<column>"
        )
    elif options.sequence_field_sort_order is SortOrder.DESCENDING:
        problem = "sequence.field.sort-order=descending would keep the oldest event; create it without that option"
    elif deletes and options.ignore_delete:
        problem = "ignore-delete=true ignores what apply_as_deletes deletes; create it without that option"
    elif deletes and not options.compaction_keep_deletes:
        problem = (
            f"without {_KEEP_DELETES}=true a compaction forgets deletions, and an older event that arrives later would "
            f"bring the row back. Set it: table.alter(SetOption({_KEEP_DELETES!r}, 'true'))"
        )
    if problem is not None:
        message = f"table {table.name} can't be the target of create_auto_cdc_flow: {problem}"
        raise InvalidInputError(message)


def _columns(
    table: DynamicTable, column_list: Sequence[str] | None, except_column_list: Sequence[str] | None
) -> list[str]:
    """Return the columns to write, in the table's order."""
    if column_list and except_column_list:
        message = f"table {table.name}: column_list and except_column_list exclude each other; leave one of them out"
        raise InvalidInputError(message)
    known = [field.name for field in table.schema.fields]
    unknown = [each for each in (*(column_list or ()), *(except_column_list or ())) if each not in known]
    if unknown:
        message = f"table {table.name} has no column {unknown[0]!r}; its columns are {', '.join(known)}"
        raise InvalidInputError(message)
    left_out = set(except_column_list or ()) if not column_list else set(known) - set(column_list)
    needed = {*table.schema.primary_keys, *table.options.sequence_field}
    if except_column_list and (lost := sorted(left_out & needed)):
        message = f"table {table.name} needs {lost[0]!r} in every row; leave it out of except_column_list"
        raise InvalidInputError(message)
    return [each for each in known if each not in left_out or each in needed]
