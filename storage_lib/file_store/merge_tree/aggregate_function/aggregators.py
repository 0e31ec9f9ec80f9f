"""Aggregate functions by name, and the column types that each supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.aggregate_function.chosen_value import (
    BooleanExtreme,
    Extreme,
    FirstNonNullValue,
    FirstValue,
    LastNonNullValue,
    LastValue,
)
from storage_lib.file_store.merge_tree.aggregate_function.collected_value import Collect, MergeMap
from storage_lib.file_store.merge_tree.aggregate_function.combined_value import Count, ListAgg, Product, Sum
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import FieldAggregator, IgnoreRetract
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
    """Return the column's aggregator; raises ``InvalidInputError`` for an unknown function or wrong column type."""
    if function not in _FUNCTIONS:
        message = (
            f"table {table}: aggregate function {function!r} of column {column.name!r} is not known; use one of "
            f"{', '.join(_FUNCTIONS)}"
        )
        raise InvalidInputError(message)
    found = _FUNCTIONS[function]
    if not found.fits(column.type):
        message = (
            f"table {table}: aggregate function {function} is for {found.types}, but column {column.name!r} is "
            f"{column.type}. Give the column another function or another type"
        )
        raise InvalidInputError(message)
    aggregator = found.make(table, column, options)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    fits: Callable[[DataType], bool]
    types: str
    meaning: str
    make: Callable[[str, DataField, FieldOptions], FieldAggregator]
    kind: type[FieldAggregator]


_FUNCTIONS: Mapping[str, _Function] = {
    "sum": _Function(
        fits=_is_in(_NUMBERS),
        types="numbers",
        meaning="sum of the values; NULL is ignored",
        make=lambda table, column, _: Sum(table=table, column=column.name),
        kind=Sum,
    ),
    "product": _Function(
        fits=_has_a_one,
        types="numbers that may be 1 (a DECIMAL with digits before the point)",
        meaning="product of the values; NULL is ignored",
        make=lambda table, column, _: Product(table=table, column=column.name),
        kind=Product,
    ),
    "count": _Function(
        fits=_is_in(frozenset({TypeRoot.INTEGER, TypeRoot.BIGINT})),
        types="INT and BIGINT",
        meaning="number of values that are not NULL",
        make=lambda table, column, _: Count(table=table, column=column.name),
        kind=Count,
    ),
    "max": _Function(
        fits=_is_in(_NUMBERS | _TEXTS | _TIMES),
        types="numbers, texts, dates and times",
        meaning="greatest value; NULL is ignored",
        make=lambda _, column, __: Extreme(name="max", type=column.type),
        kind=Extreme,
    ),
    "min": _Function(
        fits=_is_in(_NUMBERS | _TEXTS | _TIMES),
        types="numbers, texts, dates and times",
        meaning="least value; NULL is ignored",
        make=lambda _, column, __: Extreme(name="min", type=column.type),
        kind=Extreme,
    ),
    "last_value": _Function(
        fits=_is_any, types="every type", meaning="newest value, also NULL", make=lambda *_: LastValue(), kind=LastValue
    ),
    LAST_NON_NULL_VALUE: _Function(
        fits=_is_any,
        types="every type",
        meaning="newest value that is not NULL",
        make=lambda *_: LastNonNullValue(),
        kind=LastNonNullValue,
    ),
    "first_value": _Function(
        fits=_is_any,
        types="every type",
        meaning="oldest value, also NULL",
        make=lambda *_: FirstValue(),
        kind=FirstValue,
    ),
    "first_non_null_value": _Function(
        fits=_is_any,
        types="every type",
        meaning="oldest value that is not NULL",
        make=lambda *_: FirstNonNullValue(),
        kind=FirstNonNullValue,
    ),
    "first_not_null_value": _Function(
        fits=_is_any,
        types="every type",
        meaning="the same as first_non_null_value",
        make=lambda *_: FirstNonNullValue(),
        kind=FirstNonNullValue,
    ),
    "bool_and": _Function(
        fits=_is_in(frozenset({TypeRoot.BOOLEAN})),
        types="BOOLEAN",
        meaning="whether all values are true; NULL is ignored",
        make=lambda *_: BooleanExtreme(name="bool_and"),
        kind=BooleanExtreme,
    ),
    "bool_or": _Function(
        fits=_is_in(frozenset({TypeRoot.BOOLEAN})),
        types="BOOLEAN",
        meaning="whether any value is true; NULL is ignored",
        make=lambda *_: BooleanExtreme(name="bool_or"),
        kind=BooleanExtreme,
    ),
    "collect": _Function(
        fits=_is_array,
        types="ARRAY",
        meaning="elements of all arrays, oldest first",
        make=_collect,
        kind=Collect,
    ),
    "merge_map": _Function(
        fits=_is_map_with_scalar_keys,
        types="MAP with scalar keys",
        meaning="entries of all maps; for each key the newest",
        make=lambda *_: MergeMap(),
        kind=MergeMap,
    ),
    "listagg": _Function(
        fits=_is_unbounded_text,
        types="STRING",
        meaning="all values, oldest first, with a delimiter between them; NULL is ignored",
        make=_list_agg,
        kind=ListAgg,
    ),
}


def functions_documentation() -> str:
    """Return a Markdown table of the aggregate functions."""
    lines = ["| function | types | value | rows of kind -U and -D |", "|---|---|---|---|"]
    # ``takes_back`` is a property instead of a bool if it depends on the column's type.
    of_scalars = "retract scalar elements"
    retracts: dict[object, str] = {True: "retract", False: "refused"}
    for name, each in sorted(_FUNCTIONS.items()):
        lines.append(f"| `{name}` | {each.types} | {each.meaning} | {retracts.get(each.kind.takes_back, of_scalars)} |")
    return "\n".join(lines) + "\n"
