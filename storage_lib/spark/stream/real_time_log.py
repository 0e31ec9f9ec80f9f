"""Rows as records of an eventual table's topic, for Spark's Kafka sink: no Python process sees a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as sql
from pyspark.sql.types import ByteType, DecimalType, DoubleType, FloatType, IntegerType, LongType, ShortType

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.default_values import default_scalar, default_text
from storage_lib.schema.options.table_options import LogConsistency, LogFormat
from storage_lib.schema.placing.partition import ESCAPED_BYTES, ESCAPED_PATTERN, value_bytes_max
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.stream.kafka_sink_options import sink_options
from storage_lib.spark.types.jvm_bucket import jvm_bucket
from storage_lib.spark.types.jvm_json import JvmJson
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.refused_rows import refused_if
from storage_lib.spark.types.spark_schema import spark_type_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
    from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
    from storage_lib.schema.table_schema import DataField
    from storage_lib.table.dynamic_table import DynamicTable

_MICROS_DIGITS = 6
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_FRACTIONAL = (FloatType, DoubleType)


def refuse_table(table: DynamicTable) -> None:
    """Raise ``InvalidInputError`` for a table whose log Spark's Kafka sink cannot write as this library would."""
    options = table.options
    if table.log is None or options.log_consistency is not LogConsistency.EVENTUAL:
        reason = "its log is not written first, by appending alone"
        raise _refused(table, reason, "Use a table with log.consistency=eventual")
    # Not at the module's head: importing it needs the extra of Kafka.
    from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore

    if not isinstance(table.log, KafkaLogStore):
        raise _refused(table, "its log is not in Kafka", "Use a table with log.system=kafka")
    if options.log_format is not LogFormat.DEBEZIUM_JSON:
        reason = f"its log has log.format={options.log_format}, whose schemas Spark's functions don't register"
        raise _refused(table, reason, f"Use a table with log.format={LogFormat.DEBEZIUM_JSON}")
    if table.schema.bucket_count < 1:
        raise _refused(table, "it has dynamic buckets", "Use a table with a fixed number of buckets, such as bucket=4")


def refuse_missing_topic(table: DynamicTable) -> None:
    """Raise ``NotFoundError`` or ``UnavailableError`` if the table's topic is not there, before Spark starts."""
    cast("KafkaLogStore", table.log).latest_offsets()


def topic_options(table: DynamicTable) -> dict[str, str]:
    """Return the options of ``format("kafka")`` for the table's topic. Raises as ``sink_options``."""
    settings: KafkaLogSettings = cast("KafkaLogStore", table.log).settings
    return sink_options(table.name, settings)


def records_of(df: DataFrame, table: DynamicTable) -> DataFrame:
    """Return the rows of ``df`` as records with the columns key, value and partition (the bucket).

    ``df`` has passed ``check_write_schema``. Raises ``InvalidInputError`` for a column or bucket key that can't be
    converted in the JVM without changing a value.
    """
    kind = table.options.row_kind_field if table.options.row_kind_field in df.columns else None
    if kind is not None and table.options.ignore_delete:
        retractions = [RowKind.UPDATE_BEFORE.symbol, RowKind.DELETE.symbol]
        df = df.where(~quoted(kind).isin(retractions) | quoted(kind).isNull())
    columns = [_column(df, table, field).alias(field.name) for field in table.schema.fields]
    typed = df.select(*columns, *([] if kind is None else [quoted(kind)]))
    encoder = JvmJson(table.name, table.schema)
    return typed.select(
        encoder.key().alias("key"), encoder.value(kind).alias("value"), _bucket(typed, table).alias("partition")
    )


def _bucket(df: DataFrame, table: DynamicTable) -> Column:
    if table.schema.bucket_count == 1:
        return sql.lit(0)
    computed = jvm_bucket(df.schema, table.schema)
    if computed is None:
        keys = ", ".join(f"{field.name} {field.type}" for field in table.schema.bucket_key_fields)
        reason = f"Spark's functions can't compute the bucket of its bucket key ({keys}) by its bucket-function.type"
        remedy = "Use a table with bucket=1, or with a bucket key of INT, BIGINT, DATE and STRING columns"
        raise _refused(table, reason, remedy)
    return computed


def _column(df: DataFrame, table: DynamicTable, field: DataField) -> Column:
    wanted = spark_type_of(field.type)
    default = _default(table, field)
    if field.name not in df.columns:
        return sql.lit(None).cast(wanted) if default is None else default.cast(wanted)
    given = df.schema[field.name].dataType
    if not _widens(given, wanted):
        message = (
            f"table {table.name}: column {field.name!r} is {field.type} ({wanted.simpleString()} in Spark), but the "
            f"data frame has {given.simpleString()}. With real_time=True Spark converts the rows, so cast the column: "
            f".withColumn({field.name!r}, col({field.name!r}).cast({wanted.simpleString()!r}))"
        )
        raise InvalidInputError(message)
    column = quoted(field.name) if given == wanted else quoted(field.name).cast(wanted)
    if field.name in table.schema.partition_keys and field.type.root in (TypeRoot.CHAR, TypeRoot.VARCHAR):
        column = _short_enough(column, table, field)
    return column if default is None else sql.coalesce(column, default.cast(wanted))


def _short_enough(column: Column, table: DynamicTable, field: DataField) -> Column:
    """Refuse a value whose directory could not be created: tiering would fail at its record, again and again."""
    escaped = sql.regexp_replace(column, ESCAPED_PATTERN, "%" * ESCAPED_BYTES)
    message = (
        f"table {table.name}: partition column {field.name!r} has a value in a row that is too long for a directory's "
        "name. Shorten the value, or partition by another column"
    )
    return refused_if(sql.octet_length(escaped) > sql.lit(value_bytes_max(field)), column, message)


def _default(table: DynamicTable, field: DataField) -> Column | None:
    text = default_text(table.schema, field)
    if text is None:
        return None
    if field.type.root is TypeRoot.TIMESTAMP and (field.type.precision or 0) > _MICROS_DIGITS:
        reason = f"column {field.name!r} has a default of nanoseconds, which Spark's timestamps don't have"
        raise _refused(table, reason, "Write it without real_time=True")
    value = default_scalar(field, text).as_py()
    # Text, because a datetime would become a timestamp in the session's time zone.
    return sql.lit(value if isinstance(value, bool | int | float | str | bytes) else str(value))


def _widens(given: DataType, wanted: DataType) -> bool:
    """Return whether every value of ``given`` is a value of ``wanted``. Nested types have to be equal."""
    if given.simpleString() == wanted.simpleString():
        return True
    for family in (_WHOLE, _FRACTIONAL):
        if type(given) in family and type(wanted) in family:
            return family.index(type(given)) <= family.index(type(wanted))
    if isinstance(given, DecimalType) and isinstance(wanted, DecimalType):
        return given.scale <= wanted.scale and given.precision - given.scale <= wanted.precision - wanted.scale
    return False


def _refused(table: DynamicTable, reason: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"table {table.name} can't be written with real_time=True: {reason}. {remedy}")
