"""Rows serialized and hashed by another implementation of the format (docs/format.md, appendix A)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from storage_lib.schema.types.data_types import DataType, parse_data_type

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a TIMESTAMP has no zone


@dataclass(frozen=True, slots=True)
class GoldenRow:
    """Values and types of a row, its bytes with arity, its hash and its bucket of 7."""

    values: tuple[object, ...]
    types: tuple[DataType, ...]
    row: bytes
    hash: int
    bucket: int

    @property
    def columns(self) -> list[pa.Array]:
        """The row as Arrow columns of length 1."""
        return [pa.array([value], type_.arrow) for value, type_ in zip(self.values, self.types, strict=True)]


def _golden(types: str, values: object, row: str, hashed: int, bucket: int) -> GoldenRow:
    parsed = tuple(parse_data_type(text) for text in types.split("; "))
    given = values if isinstance(values, tuple) else (values,)
    return GoldenRow(given, parsed, bytes.fromhex(row), hashed, bucket)


GOLDEN_ROWS = {
    "BIGINT 1": _golden("BIGINT", 1, "0000000100000000000000000100000000000000", 1465514398, 5),
    "BIGINT -1": _golden("BIGINT", -1, "000000010000000000000000ffffffffffffffff", -821098432, 0),
    "BIGINT 1234567890123": _golden(
        "BIGINT", 1234567890123, "000000010000000000000000cb04fb711f010000", -1873221036, 1
    ),
    "INT 42": _golden("INT", 42, "0000000100000000000000002a00000000000000", 907821237, 1),
    "INT -7": _golden("INT", -7, "000000010000000000000000f9ffffff00000000", 1485184587, 5),
    "STRING of 3 bytes": _golden("STRING", "abc", "0000000100000000000000006162630000000083", -101922419, 4),
    "STRING of 7 bytes, in its slot": _golden(
        "STRING", "1234567", "0000000100000000000000003132333435363787", 199144172, 3
    ),
    "STRING of 8 bytes, behind the slots": _golden(
        "STRING", "12345678", "00000001000000000000000008000000100000003132333435363738", -391021801, 2
    ),
    "STRING of 17 bytes": _golden(
        "STRING",
        "héllo wörld ☃",
        "000000010000000000000000110000001000000068c3a96c6c6f2077c3b6726c6420e2988300000000000000",
        93580083,
        2,
    ),
    "STRING of no bytes": _golden("STRING", "", "0000000100000000000000000000000000000080", 302122119, 5),
    "three columns": _golden(
        "BIGINT; STRING; INT",
        (5, "composite-key", 9),
        "00000003000000000000000005000000000000000d000000200000000900000000000000636f6d706f736974652d6b6579000000",
        -237974562,
        0,
    ),
    "a null next to a value": _golden(
        "BIGINT; STRING", (None, "x"), "00000002000100000000000000000000000000007800000000000081", 398608515, 4
    ),
    "DECIMAL(10, 2) -12.34": _golden(
        "DECIMAL(10, 2)", Decimal("-12.34"), "0000000100000000000000002efbffffffffffff", 808378434, 3
    ),
    "DECIMAL(30, 4) of nine bytes": _golden(
        "DECIMAL(30, 4)",
        Decimal("-12345678901234567890.1234"),
        "0000000100000000000000000a00000010000000e5db64e0ef5f9369500e000000000000",
        2013574592,
        1,
    ),
    "DECIMAL(30, 4) 0.0128, whose sign takes a byte": _golden(
        "DECIMAL(30, 4)",
        Decimal("0.0128"),
        "000000010000000000000000020000001000000000800000000000000000000000000000",
        -795104203,
        5,
    ),
    "DECIMAL(30, 4) null, which keeps its room": _golden(
        "DECIMAL(30, 4)",
        None,
        "000000010001000000000000000000001000000000000000000000000000000000000000",
        -1380280760,
        5,
    ),
    "TIMESTAMP(3)": _golden(
        "TIMESTAMP(3)",
        _EPOCH + timedelta(milliseconds=1715648523456),
        "000000010000000000000000c0ec9e748f010000",
        518192047,
        2,
    ),
    "TIMESTAMP(6)": _golden(
        "TIMESTAMP(6)",
        _EPOCH + timedelta(microseconds=1715648523456789),
        "000000010000000000000000080a0c0010000000c0ec9e748f010000",
        -1508629575,
        5,
    ),
    "TIMESTAMP(6) before 1970": _golden(
        "TIMESTAMP(6)",
        _EPOCH - timedelta(microseconds=1),
        "000000010000000000000000583e0f0010000000ffffffffffffffff",
        1236894319,
        3,
    ),
    "TIMESTAMP(6) null, which keeps its room": _golden(
        "TIMESTAMP(6)", None, "00000001000100000000000000000000100000000000000000000000", -340882661, 0
    ),
    "DATE": _golden("DATE", date(2024, 5, 14), "000000010000000000000000914d000000000000", 1806713378, 1),
    "BOOLEAN true": _golden("BOOLEAN", True, "0000000100000000000000000100000000000000", 1465514398, 5),
    "BYTES": _golden("BYTES", b"\x01\x02", "0000000100000000000000000102000000000082", -308248439, 2),
    "four narrow types": _golden(
        "TINYINT; SMALLINT; FLOAT; DOUBLE",
        (-3, -300, 1.5, -2.5),
        "000000040000000000000000fd00000000000000d4fe0000000000000000c03f0000000000000000000004c0",
        536487528,
        3,
    ),
}
"""Golden rows by name."""

SIXTY_FIELDS = tuple(None if number % 7 == 0 else number for number in range(60))
"""INTs whose null bits take two words; only the beginning, length and hash of the row are known."""
SIXTY_FIELDS_ROW_START = bytes.fromhex("0000003c0081402010080402010000000000000000000000000000000100")
SIXTY_FIELDS_ROW_LENGTH = 500
SIXTY_FIELDS_HASH = 1409705310
