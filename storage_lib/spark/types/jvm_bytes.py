"""The bytes of an integer, computed in Spark's JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import functions as sql
from pyspark.sql.classic.column import Column as ClassicColumn

if TYPE_CHECKING:
    from pyspark.sql import Column

LONG_BYTES = 8
_HALF_BITS = 32
_SWAPS = ((8, 0x00FF_00FF_00FF_00FF), (16, 0x0000_FFFF_0000_FFFF))
"""Neighbouring bytes are exchanged, then pairs of them, and at last the halves of the number."""


def big_endian(number: Column) -> Column:
    """Return the eight bytes of a BIGINT (binary), most significant byte first; null for null.

    Spark's cast of integers to binary returns them, but SQL refuses it in ANSI mode, so its expression is made in the
    JVM. Over Spark Connect, which has no JVM, the bytes pass through hexadecimal text, which takes ten times as long.
    """
    if not isinstance(number, ClassicColumn):
        return sql.unhex(sql.lpad(sql.hex(number), 2 * LONG_BYTES, "0"))
    context: Any = SparkContext._active_spark_context  # noqa: SLF001  pyspark makes its columns by it
    jvm = context._jvm  # noqa: SLF001  likewise
    expressions, columns = jvm.org.apache.spark.sql.catalyst.expressions, jvm.org.apache.spark.sql.classic
    legacy = getattr(expressions, "EvalMode$").__getattr__("MODULE$").LEGACY()
    binary, no_zone = jvm.org.apache.spark.sql.types.DataTypes.BinaryType, jvm.scala.Option.empty()
    cast = expressions.Cast(columns.ExpressionUtils.expression(number._jc), binary, no_zone, legacy)  # noqa: SLF001
    return ClassicColumn(columns.ExpressionUtils.column(cast))


def little_endian(number: Column) -> Column:
    """Return the eight bytes of a BIGINT (binary), least significant byte first; null for null.

    The bytes are reversed in the number: cutting them out of its digits one by one took three times as long.
    """
    swapped = number
    for bits, mask in _SWAPS:
        high = sql.shiftleft(swapped.bitwiseAND(sql.lit(mask)), bits)
        low = sql.shiftrightunsigned(swapped, bits).bitwiseAND(sql.lit(mask))
        swapped = high.bitwiseOR(low)
    return big_endian(sql.shiftleft(swapped, _HALF_BITS).bitwiseOR(sql.shiftrightunsigned(swapped, _HALF_BITS)))
