"""The bytes of a decimal's unscaled value, as Java's ``BigInteger.toByteArray`` returns them, computed in Spark's JVM.

Spark has no function for them. Its text of a decimal contains the unscaled digits, whether or not it has an exponent:
``0.000123`` and ``1.23E-16`` (scale 18) both contain 123. Up to 18 digits fit a BIGINT. More digits are converted to
four 32-bit words, nine digits at a time.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column

LONG_DIGITS_MAX = 18
_CHUNK_DIGITS = 9
_CHUNK = 10**_CHUNK_DIGITS
_CHUNKS = 5  # of 9 digits, for up to 38
_WORDS = 4
_WORD_BITS, _WORD_MASK, _WORD_DIGITS = 32, 0xFFFFFFFF, 8
_HEX, _INVERTED_HEX = "0123456789ABCDEF", "FEDCBA9876543210"
_REPEATED_SIGN = "^(?:(?:00)*(?=[0-7].)|(?:FF)*(?=[89A-F].))"
"""Leading bytes that only repeat the sign bit of the byte after them; at least one byte remains."""


def unscaled_bytes(decimal: Column, precision: int) -> Column:
    """Return the unscaled value (binary; big-endian, as few bytes as possible); null for null."""
    digits = sql.regexp_replace(decimal.cast("string"), r"\.|E.*$", "")
    if precision <= LONG_DIGITS_MAX:
        whole = sql.lpad(sql.hex(digits.cast("bigint")), 2 * _WORD_DIGITS, "0")
    else:
        whole = _wide_hex(digits)
    found = sql.unhex(sql.regexp_replace(whole, _REPEATED_SIGN, ""))
    # Spark 4.2 may take a null in an array that ``aggregate`` has made for 0.
    return sql.when(decimal.isNotNull(), found)


def _wide_hex(digits: Column) -> Column:
    """Return 16 bytes in hexadecimal, two's complement: of a negative number n, the inverted bits of ``-n - 1``."""
    is_negative = sql.startswith(digits, sql.lit("-"))
    padded = sql.lpad(sql.regexp_replace(digits, "^-", ""), _CHUNKS * _CHUNK_DIGITS, "0")
    chunks = [
        sql.substring(padded, 1 + _CHUNK_DIGITS * place, _CHUNK_DIGITS).cast("bigint") for place in range(_CHUNKS)
    ]
    chunks[-1] = chunks[-1] - sql.when(is_negative, sql.lit(1)).otherwise(sql.lit(0))
    zero = sql.array(*[sql.lit(0).cast("bigint")] * _WORDS)
    words = sql.aggregate(sql.array(*chunks), zero, _multiplied)
    parts = [sql.lpad(sql.hex(sql.get(words, sql.lit(place))), _WORD_DIGITS, "0") for place in reversed(range(_WORDS))]
    whole = sql.concat(*parts)
    return sql.when(is_negative, sql.translate(whole, _HEX, _INVERTED_HEX)).otherwise(whole)


def _multiplied(words: Column, chunk: Column) -> Column:
    """Return the words, least significant first, times 10^9 plus ``chunk``. No intermediate sum exceeds 63 bits."""

    def carried(done: tuple[list[Column], Column], place: int) -> tuple[list[Column], Column]:
        results, carry = done
        total = sql.get(words, sql.lit(place)) * sql.lit(_CHUNK).cast("bigint") + carry
        return [*results, total.bitwiseAND(sql.lit(_WORD_MASK))], sql.shiftright(total, _WORD_BITS)

    start: tuple[list[Column], Column] = ([], chunk)
    return sql.array(*reduce(carried, range(_WORDS), start)[0])
