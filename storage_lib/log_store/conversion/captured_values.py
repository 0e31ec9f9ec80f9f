"""Convert written values to a column of the table: the record's type says what they mean, the column what to hold.

A value that the column can't hold never raises: it becomes null, and a refusal names its row and the reason. Only a
pair of types that no value can cross raises.

    written      columns
    BOOLEAN      BOOLEAN, STRING
    INTEGER      TINYINT .. BIGINT, DECIMAL, FLOAT, DOUBLE, BOOLEAN (0 and 1), STRING
    FLOAT        FLOAT, DOUBLE, TINYINT .. BIGINT, DECIMAL
    TEXT         STRING; without a name in the schema also numbers, dates and times as text, and bytes by the mode
    BYTES        BYTES
    BITS         BYTES, BIGINT
    DECIMAL      DECIMAL, TINYINT .. BIGINT, FLOAT, DOUBLE, STRING
    DATE, TIME   the same; STRING if written as text
    TIMESTAMP    TIMESTAMP; STRING if written as text
    INSTANT      TIMESTAMP_LTZ; STRING if written as text
    MOMENT       TIMESTAMP, TIMESTAMP_LTZ
    ARRAY, MAP, ROW   the same, element by element and field by field; a geometry also BYTES (well-known binary)

CHAR and VARCHAR count as STRING, BINARY and VARBINARY as BYTES: lengths and NOT NULL are checked when rows are written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.assumed_value_type import binary_type
from storage_lib.log_store.conversion.binary_values import of_base64, of_bits, of_hex
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_json import read_type
from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType
from storage_lib.log_store.conversion.decimal_values import of_decimal_texts, of_scaled, of_unscaled
from storage_lib.log_store.conversion.moment_values import MomentRules, of_days, of_numbers, of_texts
from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.log_store.conversion.number_values import TEXT_ROOTS, of_booleans, of_floats, of_integers
from storage_lib.log_store.conversion.semantic_types import GEOMETRIES
from storage_lib.log_store.conversion.value_refusals import Converted, Refused, in_rows, refused, valid, without
from storage_lib.schema.options.source_options import BINARY_MODE, DECIMAL_MODE, BinaryMode
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, null_mask, struct_child, struct_of
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType

__all__ = ["Converted", "Refused", "converted", "is_convertible"]

_BINARY_ROOTS = (TypeRoot.BINARY, TypeRoot.VARBINARY)
_WELL_KNOWN_BINARY = "wkb"
_ONLY_DIGITS = r"^[0-9]+$"


def converted(column: pa.Array, written: ValueType, field: DataField, modes: CaptureModes) -> Converted:
    """Convert a column of ``captured_json.read_type``, or as ``AvroCursor`` reads it, to the field's type.

    Raises ``InvalidInputError`` if no value of the written type can be one of the column.
    """
    return _Conversion(modes).of(column, written, field.type, field.name)


def is_convertible(written: ValueType, of: DataType, modes: CaptureModes) -> bool:
    """Whether values of the written type can be those of a column, though not every value may fit."""
    try:
        converted(pa.nulls(0, read_type(written)), written, DataField(id=-1, name="v", type=of), modes)
    except InvalidInputError:
        return False
    return True


class _Conversion:
    """Conversions with one set of modes."""

    def __init__(self, modes: CaptureModes) -> None:
        self._modes = modes
        self._rules = MomentRules(out_of_range=modes.out_of_range, time_precision=modes.time_precision)

    def of(self, column: pa.Array, written: ValueType, of: DataType, name: str) -> Converted:
        match written.meaning, of:
            case Meaning.ARRAY, ArrayType():
                return self._list(column, written, of, name)
            case Meaning.MAP, MapType() | MultisetType():
                return self._map(column, written, of, name)
            case Meaning.ROW, RowType():
                return self._row(column, written, of, name)
            case Meaning.ROW, DataType(root=TypeRoot.BINARY | TypeRoot.VARBINARY) if written.name in GEOMETRIES:
                inside = dict(written.fields)[_WELL_KNOWN_BINARY]
                return self.of(struct_child(column, _WELL_KNOWN_BINARY), inside, of, name)
        found = self._scalar(column, written, of, name)
        if found is None:
            message = (
                f"column {name!r} is {of}, but the records write it as {written}; make the column "
                f"{table_type(written)}, or leave it out of the table"
            )
            raise InvalidInputError(message)
        return found

    # Nested values

    def _list(self, column: pa.Array, written: ValueType, of: ArrayType, name: str) -> Converted:
        lists = list_parts(column)
        inside = self.of(lists.values, _part(written.element), of.element, f"{name}.element")
        refusals = in_rows(inside.refusals, lists.offsets)
        return Converted(without(lists.with_values(inside.array, of.arrow), _any(refusals, len(column))), refusals)

    def _map(self, column: pa.Array, written: ValueType, of: MapType | MultisetType, name: str) -> Converted:
        key, value = (of.key, of.value) if isinstance(of, MapType) else (of.element, DataType(TypeRoot.INTEGER))
        offsets, keys, values, nulls = _entries(column)
        inside = self.of(keys, _part(written.key), key, f"{name}.key")
        items = self.of(values, _part(written.element), value, f"{name}.value")
        empty = refused(keys, ~valid(inside.array) & ~_any(inside.refusals, len(keys)), f"{name}.key", "is not a key")
        refusals = in_rows((*inside.refusals, *items.refusals, *empty), offsets)
        mask = _any(refusals, len(column))
        # A map can't hold a null key, not even in a row that is refused.
        entries = ~np.repeat(mask, np.diff(offsets))
        kept = np.concatenate([[0], np.cumsum(np.where(mask, 0, np.diff(offsets)))]).astype(np.int32)
        array = pa.MapArray.from_arrays(
            pa.array(kept),
            inside.array.filter(pa.array(entries)),
            items.array.filter(pa.array(entries)),
            type=of.arrow,
            mask=pa.array(mask if nulls is None else mask | nulls),
        )
        return Converted(array, refusals)

    def _row(self, column: pa.Array, written: ValueType, of: RowType, name: str) -> Converted:
        types = dict(written.fields)
        children = [
            self.of(struct_child(column, each.name), types[each.name], each.type, f"{name}.{each.name}")
            if each.name in types
            else Converted(pa.nulls(len(column), each.type.arrow))
            for each in of.fields
        ]
        refusals = tuple(refusal for child in children for refusal in child.refusals)
        array = struct_of([child.array for child in children], of.arrow, null_mask(column), len(column))
        return Converted(without(array, _any(refusals, len(column))), refusals)

    # Scalar values

    def _scalar(  # noqa: PLR0911  one per kind of type
        self, column: pa.Array, written: ValueType, of: DataType, name: str
    ) -> Converted | None:
        if of.root in TEXT_ROOTS and pa.types.is_string(column.type) and _is_text(written):
            return Converted(column)
        match written.meaning:
            case Meaning.BOOLEAN:
                return of_booleans(column, of)
            case Meaning.INTEGER:
                return of_integers(column, of, name)
            case Meaning.FLOAT:
                return of_floats(column, written.bits or 64, of, name, self._modes.out_of_range)
            case Meaning.TEXT:
                return None if written.name is not None else self._text(column, of, name)
            case Meaning.BYTES:
                return self._bytes(column, written, name) if of.root in _BINARY_ROOTS else None
            case Meaning.BITS:
                return self._decoded(column, written, name, lambda raw: of_bits(raw, of, name))
            case Meaning.DECIMAL:
                return self._decimal(column, written, of, name)
            case _:
                return self._moment(column, written, of, name)

    def _text(self, column: pa.Array, of: DataType, name: str) -> Converted | None:
        if of.root in _BINARY_ROOTS:
            if self._modes.binary in (None, BinaryMode.BYTES):
                message = (
                    f"column {name!r} is {of}, but the records write it as text, and no schema says whether that is "
                    f"base64 or hex; set {BINARY_MODE} to the connector's binary.handling.mode"
                )
                raise InvalidInputError(message)
            return self._bytes(column, binary_type(self._modes.binary), name)
        if of.root is TypeRoot.BOOLEAN:
            return None
        return of_texts(column, of, name, self._rules) or of_decimal_texts(column, of, name, self._modes.out_of_range)

    def _bytes(self, column: pa.Array, written: ValueType, name: str) -> Converted:
        if pa.types.is_binary(column.type):
            return Converted(column)
        if written.spelling is Spelling.HEX:
            return of_hex(column, name)
        return of_base64(column, name, is_url_safe=written.spelling is Spelling.BASE64_URL)

    def _decoded(
        self, column: pa.Array, written: ValueType, name: str, convert: Callable[[pa.Array], Converted | None]
    ) -> Converted | None:
        raw = self._bytes(column, written, name)
        found = convert(raw.array)
        return None if found is None else Converted(found.array, (*raw.refusals, *found.refusals))

    def _decimal(self, column: pa.Array, written: ValueType, of: DataType, name: str) -> Converted | None:
        far = self._modes.out_of_range
        match written.spelling:
            case Spelling.TEXT:
                return of_decimal_texts(column, of, name, far)
            case Spelling.NUMBER:
                return of_floats(column, 64, of, name, far)
            case Spelling.DIGITS:
                return Converted(column) if column.type == of.arrow else None
            case Spelling.SCALED:
                return self._scaled(column, written, of, name)
        scale = written.scale or 0
        guessed = self._either_mode(column, written, name)
        column = without(column, _any(guessed, len(column)))
        found = self._decoded(column, written, name, lambda raw: of_unscaled(raw, scale, of, name, far))
        return None if found is None else Converted(found.array, (*guessed, *found.refusals))

    def _scaled(self, column: pa.Array, written: ValueType, of: DataType, name: str) -> Converted | None:
        values, scales = struct_child(column, "value"), struct_child(column, "scale")
        is_partial = valid(column) & ~(valid(values) & valid(scales))
        partial = refused(column, is_partial, name, "has no scale or no value")
        values, scales = without(values, is_partial), without(scales, is_partial)
        far = self._modes.out_of_range
        found = self._decoded(values, written, name, lambda raw: of_scaled(raw, scales, of, name, far))
        return None if found is None else Converted(found.array, (*partial, *found.refusals))

    def _either_mode(self, column: pa.Array, written: ValueType, name: str) -> tuple[Refused, ...]:
        """Refuse text that mode ``precise`` and mode ``string`` both write, unless an option names the mode."""
        if not written.is_guessed or not pa.types.is_string(column.type):
            return ()
        mask = pc.fill_null(pc.match_substring_regex(column, _ONLY_DIGITS), fill_value=False)
        why = f"is base64 and a number; set {DECIMAL_MODE} to the connector's decimal.handling.mode"
        return refused(column, mask.to_numpy(zero_copy_only=False), name, why)

    def _moment(self, column: pa.Array, written: ValueType, of: DataType, name: str) -> Converted | None:
        if of.root not in _COLUMNS.get(written.meaning, ()):
            return None
        if written.spelling is Spelling.TEXT:
            return of_texts(column, of, name, self._rules)
        if written.meaning is Meaning.DATE:
            return of_days(column, of, name, self._rules)
        return of_numbers(column, written.unit or "ms", of, name, self._rules)


_COLUMNS = {
    Meaning.DATE: (TypeRoot.DATE,),
    Meaning.TIME: (TypeRoot.TIME,),
    Meaning.TIMESTAMP: (TypeRoot.TIMESTAMP,),
    Meaning.INSTANT: (TypeRoot.TIMESTAMP_LTZ,),
    Meaning.MOMENT: (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ),
}


def _is_text(written: ValueType) -> bool:
    return written.spelling is Spelling.TEXT or written.meaning is Meaning.TEXT


def _entries(column: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array, np.ndarray | None]:
    """Return offsets, keys, values and nulls of maps, which Avro writes as arrays of entries if keys are not text."""
    if pa.types.is_map(column.type):
        maps = map_parts(column)
        return maps.offsets, maps.keys, maps.values, maps.nulls
    lists = list_parts(column)
    return lists.offsets, struct_child(lists.values, "key"), struct_child(lists.values, "value"), lists.nulls


def _any(refusals: tuple[Refused, ...], count: int) -> np.ndarray:
    mask = np.zeros(count, bool)
    for each in refusals:
        mask |= each.mask
    return mask


def _part(written: ValueType | None) -> ValueType:
    if written is None:
        message = "an array or a map without the type of its elements"
        raise InvalidInputError(message)
    return written
