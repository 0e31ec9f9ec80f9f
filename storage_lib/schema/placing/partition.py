"""Partitions of a table: values, bytes in metadata, and directories (docs/format.md, 1.2).

Values are always decoded from the bytes, never from the directory: several values may share a directory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.schema.encoding.binary_row import decode_row, encode_row
from storage_lib.schema.encoding.java_text import is_blank, java_float, java_local_date_time
from storage_lib.schema.filter.literal import typed_literal
from storage_lib.schema.table_schema import DataField, TableSchema
from storage_lib.schema.types.data_types import DataType, TypeRoot

DEFAULT_PARTITION_NAME = "__DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{}[]^\x7f") | frozenset(map(chr, range(0x20)))
DIRECTORY_NAME_BYTES_MAX = 255
"""Limit of local disks, HDFS and S3 servers that store files."""
ESCAPED_BYTES = 3
ESCAPED_PATTERN = "[" + "".join(rf"\x{ord(each):02x}" for each in sorted(_ESCAPED)) + "]"
"""Regular expression, for Python and Java, of the characters that take ``ESCAPED_BYTES`` in a directory name."""
_EPOCH = date(1970, 1, 1)
_NANO_DIGITS = 9


class PartitionCodec:
    """Encodes and decodes the partitions of one table. Immutable, so thread-safe."""

    def __init__(self, schema: TableSchema) -> None:
        self._fields = schema.partition_fields
        self._types = tuple(field.type for field in self._fields)
        # A table without the option was created by another engine, which names DATE partitions by days.
        self._legacy = schema.options.get("partition.legacy-name", "true").strip().lower() == "true"
        self._default_name = schema.options.get("partition.default-name", DEFAULT_PARTITION_NAME)

    def encode(self, values: Mapping[str, object]) -> bytes:
        """Encode a partition from one value per partition column; text is parsed as the column's type.

        Raises ``InvalidInputError`` for missing and unknown columns and for values of other types.
        """
        names = [field.name for field in self._fields]
        if set(values) != set(names):
            given = ", ".join(map(str, values))
            message = f"a partition is named by ({', '.join(names)}), not by ({given}); name each of them"
            raise InvalidInputError(message)
        return encode_row([_typed(values[field.name], field) for field in self._fields], self._types)

    def decode(self, partition: bytes) -> dict[str, object]:
        """Return values by column, in partition column order. Raises ``CorruptFileError`` for invalid bytes."""
        values = decode_row(partition, self._types)
        return {field.name: value for field, value in zip(self._fields, values, strict=True)}

    def path(self, partition: bytes) -> str:
        """Return the directory, ``dt=2024-05-14/region=eu/``; empty for an unpartitioned table."""
        return partition_path(
            self._fields, decode_row(partition, self._types), legacy=self._legacy, default_name=self._default_name
        )


def partition_path(
    fields: Sequence[DataField],
    values: Sequence[object],
    *,
    legacy: bool = False,
    default_name: str = DEFAULT_PARTITION_NAME,
) -> str:
    """Return the directory of a partition below the table, with a trailing slash.

    ``legacy`` formats values as older Paimon does (option ``partition.legacy-name``): dates as days since 1970.
    """
    parts = []
    for field, value in zip(fields, values, strict=True):
        text = "" if value is None else _spelled(value, field.type, legacy=legacy)
        shown = default_name if is_blank(text) else _escaped(text)
        parts.append(f"{_escaped(field.name)}={shown}/")
    return "".join(parts)


def too_long_value(field: DataField, values: pa.Array) -> str | None:
    """Return a value whose directory name would exceed file systems' limit; None if there is no such value."""
    if field.type.root not in (TypeRoot.CHAR, TypeRoot.VARCHAR):
        return None
    bytes_max = value_bytes_max(field)
    lengths = pc.binary_length(values)
    suspects = pc.greater(lengths, bytes_max // ESCAPED_BYTES)
    if not pc.any(suspects).as_py():
        return None
    for value in values.filter(suspects, null_selection_behavior="drop").unique().to_pylist():
        if len(_escaped(value).encode()) > bytes_max:
            return str(value)
    return None


def value_bytes_max(field: DataField) -> int:
    """Return how long an escaped value of a partition column may be, in bytes."""
    return DIRECTORY_NAME_BYTES_MAX - len(f"{_escaped(field.name)}=".encode())


def _typed(value: object, field: DataField) -> object:
    return None if value is None and field.type.nullable else typed_literal(value, field)


def _spelled(value: object, data_type: DataType, *, legacy: bool) -> str:  # noqa: PLR0911  one per type
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return java_float(value, single=data_type.root is TypeRoot.FLOAT)
        case Decimal():
            return f"{value:f}"
        case datetime():
            local = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return java_local_date_time(local) if legacy else _cast_timestamp(local, data_type.precision or 0)
        case date():
            return str((value - _EPOCH).days) if legacy else value.isoformat()
        case time():
            return str(_millis_of_day(value)) if legacy else _cast_time(value, data_type.precision or 0)
        case bytes():
            # Other engines name these by a memory address, so that nobody can find them again.
            message = f"a partition column can't be {data_type}: {value.hex()} has no name as a directory. Use a STRING"
            raise InvalidInputError(message)
        case _:
            return str(value)


def _cast_timestamp(value: datetime, precision: int) -> str:
    """Format as SQL's CAST to STRING: at least ``precision`` fraction digits, without further trailing zeros."""
    text = value.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    fraction = f"{value.microsecond:06d}".ljust(_NANO_DIGITS, "0")
    fraction = fraction[:precision] + fraction[precision:].rstrip("0")
    return f"{text}.{fraction}" if fraction else text


def _cast_time(value: time, precision: int) -> str:
    """Format as SQL's CAST to STRING: at most ``precision`` fraction digits, at least one if precision is not 0."""
    text = value.strftime("%H:%M:%S")
    if precision == 0:
        return text
    millis = f"{value.microsecond // 1000:03d}"
    return f"{text}.{millis[0]}{millis[1:].rstrip('0')}"[: len(text) + 1 + precision]


def _millis_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _escaped(text: str) -> str:
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)
