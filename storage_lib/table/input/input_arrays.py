"""Converts input arrays to exactly a column's type, nested or not, or raises an error that names the place.

A field inside a nested column is named by its path: ``address.zip``, ``tags.element``, ``prices.value``.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.exact_decimals import as_decimals
from storage_lib.schema.types.nested_arrays import as_list, list_parts, map_parts, null_mask, struct_child, struct_of
from storage_lib.schema.types.nested_types import (
    ArrayType,
    MapType,
    MultisetType,
    RowType,
    children_of,
    is_list,
    is_nested,
)
from storage_lib.schema.types.variant import as_variants, holds_variants

_WITH_LENGTH = (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY)
_TEXTS = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_COUNT = DataType(TypeRoot.INTEGER, nullable=False)
_NO_VARIANT = (
    "a struct of the binaries 'value' and 'metadata' as parse_json makes it in Spark, and VariantVal.parseJson in "
    "pyspark.sql.types"
)


def conformed(array: pa.Array, wanted: DataType, place: str) -> pa.Array:
    """Convert ``array``, for whose type ``misfit`` is None, to the type ``wanted``.

    Raises ``InvalidInputError`` for a value that the type cannot represent, a null in a NOT NULL type, and text or
    bytes that are too long.
    """
    if isinstance(array.type, pa.DictionaryType):
        array = array.dictionary_decode()
    if wanted.root is TypeRoot.VARIANT and not pa.types.is_null(array.type):
        array = _variants(array, place)
    elif is_nested(wanted) and not pa.types.is_null(array.type):
        array = _nested(array, wanted, place)
    elif array.type != wanted.arrow:
        try:
            is_decimal = pa.types.is_decimal(wanted.arrow) and not pa.types.is_null(array.type)
            array = as_decimals(array, wanted.arrow) if is_decimal else _cast(array, wanted.arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            message = (
                f"column {place!r} is {wanted} and can't hold every value of the input's {array.type}: {error}. "
                "Mend these values, or cast the column yourself"
            )
            raise InvalidInputError(message) from error
    _check_text(array, wanted, place)
    _check_length(array, wanted, place)
    return array


def fits_exactly(given: pa.DataType, wanted: DataType) -> bool:
    """Return whether ``conformed`` returns every array of type ``given`` unchanged."""
    return not is_nested(wanted) and given == wanted.arrow and wanted.length is None and wanted.root not in _TEXTS


def misfit(given: pa.DataType, wanted: DataType, place: str) -> str | None:
    """Return the reason why values of ``given`` cannot become ``wanted`` without changing meaning; None if they can."""
    if isinstance(given, pa.DictionaryType):
        given = given.value_type
    if pa.types.is_null(given):
        return None
    if not is_nested(wanted):
        return None if _fits(given, wanted.arrow) else f"{place!r} is {wanted} ({wanted.arrow} in Arrow), not {given}"
    if wanted.root is TypeRoot.VARIANT:
        return None if holds_variants(given) else f"{place!r} is VARIANT, {_NO_VARIANT}, not {given}"
    parts = _parts_of(given, wanted)
    if parts is None:
        return f"{place!r} is {wanted} ({wanted.arrow} in Arrow), not {given}"
    if isinstance(wanted, RowType):
        problem = _misfit_of_names(given, wanted, place)
        if problem is not None:
            return problem
    types = dict(children_of(wanted))
    problems = (
        misfit(part, types.get(name, _COUNT), f"{place}.{name}") for name, part in parts if name in (*types, "value")
    )
    return next((problem for problem in problems if problem is not None), None)


def _misfit_of_names(given: pa.StructType, wanted: RowType, place: str) -> str | None:
    there = [given.field(index).name for index in range(given.num_fields)]
    known = [each.name for each in wanted.fields]
    for name in there:
        if name not in known:
            return f"{place!r} is {wanted} and has no field {name!r}; rename or drop it"
        if there.count(name) > 1:
            return f"{place!r} has the field {name!r} twice; drop one of them"
    for each in wanted.fields:
        if each.name not in there and not each.type.nullable:
            return f"{place!r} lacks the field {each.name!r}, which is {each.type}"
    return None


def _parts_of(given: pa.DataType, wanted: DataType) -> list[tuple[str, pa.DataType]] | None:
    """Return the child types of ``given`` by their names in ``wanted``; None if it is of another kind."""
    match wanted:
        case ArrayType():
            return [("element", given.value_type)] if is_list(given) else None
        case MapType():
            return [("key", given.key_type), ("value", given.item_type)] if pa.types.is_map(given) else None
        case MultisetType():
            return [("element", given.key_type), ("value", given.item_type)] if pa.types.is_map(given) else None
        case _:
            if not pa.types.is_struct(given):
                return None
            return [(given.field(index).name, given.field(index).type) for index in range(given.num_fields)]


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values; ``ArrowInvalid`` for one that the type can't hold, also for a number that would be infinite."""
    cast = array.cast(wanted, safe=True)
    if pa.types.is_floating(array.type) and pa.types.is_floating(wanted) and wanted.bit_width < array.type.bit_width:
        grown = pc.and_(pc.is_inf(cast), pc.invert(pc.is_inf(array)))
        if pc.any(grown).as_py():
            message = f"{array.filter(grown)[0].as_py()} is larger than any finite {wanted}"
            raise pa.ArrowInvalid(message)
    return cast


def _check_text(array: pa.Array, wanted: DataType, place: str) -> None:
    """Refuse invalid UTF-8, at which readers in Rust and Java fail, or end their process."""
    if wanted.root not in _TEXTS:
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        message = f"column {place!r} is {wanted}, and the input has bytes that are no text: {error}"
        raise InvalidInputError(message) from error


def _variants(array: pa.Array, place: str) -> pa.Array:
    try:
        return as_variants(array)
    except InvalidInputError as error:
        message = f"column {place!r} is VARIANT: {error}"
        raise InvalidInputError(message) from error


def _nested(array: pa.Array, wanted: DataType, place: str) -> pa.Array:
    match wanted:
        case ArrayType():
            lists = list_parts(as_list(array))
            element = _child(lists.values, wanted.element, f"{place}.element")
            return lists.with_values(element, wanted.arrow)
        case MapType() | MultisetType():
            maps = map_parts(array)
            key_type, value_type = (
                (wanted.key, wanted.value) if isinstance(wanted, MapType) else (wanted.element, _COUNT)
            )
            keys = _child(maps.keys, key_type, f"{place}.key")
            return maps.with_entries(keys, _child(maps.values, value_type, f"{place}.value"), wanted.arrow)
        case RowType():
            nulls = null_mask(array)
            children = []
            for each in wanted.fields:
                where = f"{place}.{each.name}"
                if array.type.get_field_index(each.name) < 0:
                    children.append(pa.nulls(len(array), each.type.arrow))
                    continue
                child = struct_child(array, each.name)
                # The child is null where the row is, which is not a missing value.
                missing = child.null_count - (0 if nulls is None else int(nulls.sum()))
                children.append(conformed(child, each.type, where))
                if missing and not each.type.nullable:
                    raise _null(each.type, where, missing, len(array))
            return struct_of(children, wanted.arrow, nulls, len(array))
        case _:
            return array


def _child(array: pa.Array, wanted: DataType, place: str) -> pa.Array:
    if not wanted.nullable and array.null_count:
        raise _null(wanted, place, array.null_count, len(array))
    return conformed(array, wanted, place)


def _null(wanted: DataType, place: str, count: int, length: int) -> InvalidInputError:
    message = f"column {place!r} is {wanted}, but {count} of {length} have no value. Fill or drop them"
    return InvalidInputError(message)


def lengths_to_check(array: pa.Array, wanted: DataType) -> pa.Array | None:
    """Return the lengths of values in characters or bytes; None if the type takes values of any length."""
    if wanted.length is None or wanted.root not in _WITH_LENGTH:
        return None
    return pc.binary_length(array) if pa.types.is_binary(array.type) else pc.utf8_length(array)


def _check_length(array: pa.Array, wanted: DataType, place: str) -> None:
    lengths = lengths_to_check(array, wanted)
    if lengths is None or wanted.length is None:
        return
    longest = pc.max(lengths).as_py()
    if longest is not None and longest > wanted.length:
        too_long = pc.fill_null(pc.greater(lengths, wanted.length), fill_value=False)
        row = pc.index(too_long, value=True).as_py()
        message = (
            f"column {place!r} is {wanted}, but row {row} has a value of "
            f"{lengths[row]} characters or bytes. Shorten it, or make the column longer"
        )
        raise InvalidInputError(message)


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of a scalar type can become ``wanted`` without changing meaning."""
    if given == wanted:
        return True
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    if pa.types.is_decimal(wanted) and (pa.types.is_integer(given) or pa.types.is_floating(given) or _is_text(given)):
        return True
    if pa.types.is_integer(given) and pa.types.is_floating(wanted):
        return True
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    for family in (*numbers, _is_text, _is_bytes, pa.types.is_time):
        if family(wanted):
            return bool(family(given))
    return False


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    )
