"""The aggregate functions by name, and which column types each is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.chosen_value import (
    BooleanExtreme,
    Extreme,
    FirstNonNullValue,
    FirstValue,
    LastNonNullValue,
    LastValue,
)
from storage_lib.file_store.merge_tree.merge_function.collected_value import Collect, MergeMap
from storage_lib.file_store.merge_tree.merge_function.combined_value import Count, ListAgg, Product, Sum
from storage_lib.file_store.merge_tree.merge_function.field_aggregator import FieldAggregator, IgnoreRetract
from storage_lib.schema.options.field_options import DELIMITER_DEFAULT, FieldOptions
from storage_lib.schema.table_schema import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, is_nested

LAST_NON_NULL_VALUE = "last_non_null_value"

_INTEGERS = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INTEGER, TypeRoot.BIGINT})
_FLOATS = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_NUMBERS = _INTEGERS | _FLOATS | {TypeRoot.DECIMAL}
_TEXTS = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_TIMES = frozenset({TypeRoot.DATE, TypeRoot.TIME, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


def aggregator_of(table: str, column: DataField, function: str, options: FieldOptions) -> FieldAggregator:
    """The column's aggregator. ``InvalidInputError`` for an unknown function or one that isn't for its type."""
    if function not in _FUNCTIONS:
        message = (
            f"table {table}: aggregate function {function!r} of column {column.name!r} is not known; use one of "
            f"{', '.join(_FUNCTIONS)}"
        )
        raise InvalidInputError(message)
    fits, types, make = _FUNCTIONS[function]
    if not fits(column.type):
        message = (
            f"table {table}: aggregate function {function} is for {types}, but column {column.name!r} is "
            f"{column.type}. Give the column another function or another type"
        )
        raise InvalidInputError(message)
    aggregator = make(table, column, options)
    return IgnoreRetract(aggregator=aggregator) if column.name in options.ignore_retract else aggregator


def _is_any(_: DataType) -> bool:
    return True


def _is_in(roots: frozenset[TypeRoot]) -> Callable[[DataType], bool]:
    return lambda data_type: data_type.root in roots


def _has_a_one(data_type: DataType) -> bool:
    if data_type.root is TypeRoot.DECIMAL:
        return (data_type.precision or 0) > (data_type.scale or 0)
    return data_type.root in _NUMBERS


def _is_unbounded_text(data_type: DataType) -> bool:
    return data_type.root is TypeRoot.VARCHAR and data_type.length is None


def _list_agg(_: str, column: DataField, options: FieldOptions) -> FieldAggregator:
    delimiter = options.delimiters.get(column.name, DELIMITER_DEFAULT)
    return ListAgg(delimiter=delimiter, distinct=column.name in options.distinct)


def _is_array(data_type: DataType) -> bool:
    return isinstance(data_type, ArrayType)


def _is_map_with_scalar_keys(data_type: DataType) -> bool:
    return isinstance(data_type, MapType) and not is_nested(data_type.key)


def _collect(table: str, column: DataField, options: FieldOptions) -> FieldAggregator:
    compares = isinstance(column.type, ArrayType) and not is_nested(column.type.element)
    distinct = column.name in options.distinct
    if distinct and not compares:
        message = (
            f"table {table}: option fields.{column.name}.distinct is for arrays of scalar values, but column "
            f"{column.name!r} is {column.type}. Leave the option out, or make the elements scalar"
        )
        raise InvalidInputError(message)
    return Collect(distinct=distinct, compares=compares)


_Fits = Callable[[DataType], bool]
_Make = Callable[[str, DataField, FieldOptions], FieldAggregator]
_FUNCTIONS: Mapping[str, tuple[_Fits, str, _Make]] = {
    "sum": (_is_in(_NUMBERS), "numbers", lambda table, column, _: Sum(table=table, column=column.name)),
    "product": (
        _has_a_one,
        "numbers that may be 1 (a DECIMAL with digits before the point)",
        lambda table, column, _: Product(table=table, column=column.name),
    ),
    "count": (
        _is_in(frozenset({TypeRoot.INTEGER, TypeRoot.BIGINT})),
        "INT and BIGINT",
        lambda table, column, _: Count(table=table, column=column.name),
    ),
    "max": (
        _is_in(_NUMBERS | _TEXTS | _TIMES),
        "numbers, texts, dates and times",
        lambda _, column, __: Extreme(name="max", type=column.type),
    ),
    "min": (
        _is_in(_NUMBERS | _TEXTS | _TIMES),
        "numbers, texts, dates and times",
        lambda _, column, __: Extreme(name="min", type=column.type),
    ),
    "last_value": (_is_any, "every type", lambda *_: LastValue()),
    LAST_NON_NULL_VALUE: (_is_any, "every type", lambda *_: LastNonNullValue()),
    "first_value": (_is_any, "every type", lambda *_: FirstValue()),
    "first_non_null_value": (_is_any, "every type", lambda *_: FirstNonNullValue()),
    "first_not_null_value": (_is_any, "every type", lambda *_: FirstNonNullValue()),
    "bool_and": (_is_in(frozenset({TypeRoot.BOOLEAN})), "BOOLEAN", lambda *_: BooleanExtreme(name="bool_and")),
    "bool_or": (_is_in(frozenset({TypeRoot.BOOLEAN})), "BOOLEAN", lambda *_: BooleanExtreme(name="bool_or")),
    "collect": (_is_array, "ARRAY", _collect),
    "merge_map": (_is_map_with_scalar_keys, "MAP with scalar keys", lambda *_: MergeMap()),
    "listagg": (_is_unbounded_text, "STRING", _list_agg),
}
