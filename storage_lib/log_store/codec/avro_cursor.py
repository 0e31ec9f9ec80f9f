"""Decode many Avro records of one schema to columns: one cursor per record, all advanced field by field.

Nothing loops over records: a field is read from all records at once, a union's value from all records that have
one, an array's k-th element from all records with at least k. Logical types are returned as plain numbers and bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from storage_lib.schema.encoding.varint_columns import bytes_at, read_varints
from storage_lib.schema.types.nested_arrays import struct_of

if TYPE_CHECKING:
    from storage_lib.format.avro_types import AvroSchema
    from storage_lib.schema.encoding.varint_columns import Bytes, Int64s

_FLOATS = {"float": ("<f4", pa.float32()), "double": ("<f8", pa.float64())}
_NAMED = ("record", "enum", "fixed")
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def with_names_spelled_out(schema: AvroSchema, defined_before: Sequence[AvroSchema] = ()) -> AvroSchema:
    """Replace every reference to a named type by that type. Raises ``ValueError`` for a recursive schema.

    The schema may refer to types that ``defined_before`` defines; each of those schemas may refer to earlier ones.
    """
    known: dict[str, Any] = {}
    for each in defined_before:
        _spelled_out(each, "", known)
    return _spelled_out(schema, "", known)


def _spelled_out(schema: Any, namespace: str, known: dict[str, Any]) -> Any:  # noqa: PLR0911  one per kind of type
    if isinstance(schema, list):
        return [_spelled_out(each, namespace, known) for each in schema]
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return schema
        name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        found = known.get(name, known.get(schema))
        if found is None:
            message = f"the Avro type {schema!r} is recursive or undefined"
            raise ValueError(message)
        return found
    kind = schema["type"]
    if not isinstance(kind, str):
        return _spelled_out(kind, namespace, known)
    if kind not in _NAMED:
        inside = {key: _spelled_out(schema[key], namespace, known) for key in ("items", "values") if key in schema}
        if kind not in (*_PRIMITIVES, "array", "map"):
            return _spelled_out(kind, namespace, known)
        return {**schema, **inside}
    name, within = schema["name"], schema.get("namespace", namespace)
    if "." in name:
        within = name.rpartition(".")[0]
    full = name if "." in name or not within else f"{within}.{name}"
    if kind == "record":
        fields = [{**each, "type": _spelled_out(each["type"], within, known)} for each in schema["fields"]]
        schema = {**schema, "fields": fields}
    known[full] = schema
    return schema


def arrow_type(of: AvroSchema) -> pa.DataType:  # noqa: PLR0911  one per kind of type
    """Return the Arrow type of a column that was read from values of an Avro type."""
    kind, spec, _ = _kind(of)
    match kind:
        case "boolean":
            return pa.bool_()
        case "int" | "long":
            return pa.int64()
        case "float" | "double":
            return _FLOATS[kind][1]
        case "bytes" | "fixed":
            return pa.binary()
        case "string" | "enum":
            return pa.string()
        case "record":
            return pa.struct([(each["name"], arrow_type(each["type"])) for each in spec["fields"]])
        case "array":
            return pa.list_(arrow_type(spec["items"]))
        case "map":
            return pa.map_(pa.string(), arrow_type(spec["values"]))
        case _:
            return pa.null()


class AvroCursor:
    """Position of the next field in each of several records, which lie in ``data``."""

    def __init__(self, data: Bytes, positions: Int64s) -> None:
        self._data = data
        self._positions = positions

    @property
    def positions(self) -> Int64s:
        """Position of the next field in each record."""
        return self._positions

    def fields(self, record: AvroSchema, wanted: Collection[str]) -> dict[str, pa.Array]:
        """Read the ``wanted`` fields of a record and stop after the last of them.

        Raises ``ValueError`` if the bytes are recognisably not of this schema.
        """
        found: dict[str, pa.Array] = {}
        for each in _kind(record)[1]["fields"]:
            if len(found) == len(wanted):
                break
            array = self._read(each["type"], skip=each["name"] not in wanted)
            if array is not None:
                found[each["name"]] = array
        return found

    def _read(self, of: AvroSchema, *, skip: bool) -> pa.Array | None:
        if isinstance(of, Sequence) and not isinstance(of, str):
            return self._union(of, skip=skip)
        kind, spec, _ = _kind(of)
        match kind:
            case "null":
                return None if skip else pa.nulls(len(self._positions))
            case "record":
                children = [self._read(each["type"], skip=skip) for each in spec["fields"]]
                return None if skip else struct_of(children, arrow_type(of), None, len(self._positions))
            case "array" | "map":
                return self._entries(kind, spec, skip=skip)
            case _:
                return self._scalar(kind, spec, skip=skip)

    def _scalar(  # noqa: PLR0911  one per kind of type
        self, kind: str, spec: Mapping[str, Any], *, skip: bool
    ) -> pa.Array | None:
        match kind:
            case "int" | "long":
                numbers = self._varints()
                return None if skip else pa.array(numbers)
            case "boolean":
                start = self._advanced(np.ones(len(self._positions), np.int64))
                return None if skip else pa.array(self._data[start].astype(bool))
            case "float" | "double":
                dtype, arrow = _FLOATS[kind]
                width = np.dtype(dtype).itemsize
                start = self._advanced(np.full(len(self._positions), width, np.int64))
                if skip or not len(start):
                    return None if skip else pa.array([], arrow)
                windows = np.lib.stride_tricks.sliding_window_view(self._data, width)[start]
                return pa.array(np.ascontiguousarray(windows).view(dtype).ravel(), arrow)
            case "bytes" | "string":
                lengths = self._varints()
            case "fixed":
                lengths = np.full(len(self._positions), int(spec["size"]), np.int64)
            case "enum":
                symbols = self._varints()
                return None if skip else pa.array(spec["symbols"], pa.string()).take(pa.array(symbols))
            case _:
                message = f"unknown Avro type {kind!r}"
                raise ValueError(message)
        start = self._advanced(lengths)
        if skip:
            return None
        content = bytes_at(self._data, start, lengths)
        return content.cast(pa.string()) if kind == "string" else content

    def _union(self, branches: Sequence[AvroSchema], *, skip: bool) -> pa.Array | None:
        chosen = self._varints()
        others = [number for number, each in enumerate(branches) if each != "null"]
        if len(others) > 1:
            message = f"a union of several types ({len(others)}) is not supported as a column type"
            raise ValueError(message)
        if ((chosen < 0) | (chosen >= len(branches))).any():
            message = "invalid branch of a union"
            raise ValueError(message)
        if not others:
            return None if skip else pa.nulls(len(chosen))
        has_value = chosen == others[0]
        if has_value.all():
            return self._read(branches[others[0]], skip=skip)
        rows = np.flatnonzero(has_value)
        inner = AvroCursor(self._data, self._positions[rows])
        values = inner._read(branches[others[0]], skip=skip)
        self._positions = self._positions.copy()
        self._positions[rows] = inner._positions
        if values is None:
            return None
        places = np.cumsum(has_value) - 1
        return values.take(pa.array(places, mask=~has_value))

    def _entries(self, kind: str, spec: Mapping[str, Any], *, skip: bool) -> pa.Array | None:
        """Read arrays or maps: blocks of entries, each preceded by its count, up to an empty block."""
        item = spec["items"] if kind == "array" else _entry(spec["values"])
        owners: list[Int64s] = []
        parts: list[pa.Array] = []
        self._positions = self._positions.copy()
        open_rows = np.arange(len(self._positions))
        while len(open_rows):
            cursor = AvroCursor(self._data, self._positions[open_rows])
            counts = cursor._varints()
            self._positions[open_rows] = cursor._positions
            sized = open_rows[counts < 0]
            if len(sized):
                sizes = AvroCursor(self._data, self._positions[sized])
                sizes._varints()
                self._positions[sized] = sizes._positions
            counts = np.abs(counts)
            # The smallest 64-bit integer can't be negated.
            if counts.max(initial=0) > len(self._data) or counts.min(initial=0) < 0:
                message = "more entries than bytes"
                raise ValueError(message)
            open_rows, counts = open_rows[counts > 0], counts[counts > 0]
            for number in range(int(counts.max(initial=0))):
                rows = open_rows[counts > number]
                cursor = AvroCursor(self._data, self._positions[rows])
                part = cursor._read(item, skip=skip)
                self._positions[rows] = cursor._positions
                owners.append(rows)
                if part is not None:
                    parts.append(part)
        if skip:
            return None
        owner = np.concatenate([*owners, np.zeros(0, np.int64)]).astype(np.int64)
        entries = pa.concat_arrays([*parts, pa.array([], arrow_type(item))])
        entries = entries.take(pa.array(np.argsort(owner, kind="stable")))
        offsets = np.zeros(len(self._positions) + 1, np.int32)
        np.cumsum(np.bincount(owner, minlength=len(self._positions)), out=offsets[1:])
        if kind == "array":
            return pa.ListArray.from_arrays(pa.array(offsets), entries)
        return pa.MapArray.from_arrays(pa.array(offsets), entries.field(0), entries.field(1))

    def _varints(self) -> Int64s:
        self._check(self._positions, 1)
        numbers, self._positions = read_varints(self._data, self._positions)
        return numbers

    def _advanced(self, by: Int64s) -> Int64s:
        """Advance the positions; return the old ones."""
        start = self._positions
        self._check(start, by)
        self._positions = start + by
        return start

    def _check(self, start: Int64s, length: Int64s | int) -> None:
        if not len(start):
            return
        size = len(self._data)
        # Check the length by itself as well: start + length may overflow 64 bits and become negative.
        if np.min(length) < 0 or np.max(length) > size or np.max(start + length) > size:
            message = "the bytes end before the record does"
            raise ValueError(message)


def _entry(values: AvroSchema) -> AvroSchema:
    fields = [{"name": "key", "type": "string"}, {"name": "value", "type": values}]
    return {"type": "record", "name": "entry", "fields": fields}


def _kind(of: AvroSchema) -> tuple[str, Mapping[str, Any], bool]:
    """Return the kind of a type, its description, and whether it may be null."""
    if isinstance(of, str):
        return of, {}, of == "null"
    if isinstance(of, Sequence):
        others = [each for each in of if each != "null"]
        if not others:
            return "null", {}, True
        kind, spec, _ = _kind(others[0])
        return kind, spec, True
    return str(of["type"]), of, False
