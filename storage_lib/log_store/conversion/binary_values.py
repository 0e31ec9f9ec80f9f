"""Convert text of binary values, in base64 or hex, to bytes, and BIT strings to numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.log_store.conversion.value_refusals import Converted, refused, valid
from storage_lib.schema.types.data_types import DataType, TypeRoot

_BASE64_GROUP = 4
_LONG_BYTES = 8


def of_base64(column: pa.Array, name: str, *, is_url_safe: bool = False) -> Converted:
    """Decode base64, with or without padding; ``is_url_safe``: with ``-`` and ``_`` in place of ``+`` and ``/``."""
    text = pl.Series(pl.from_arrow(column))
    if is_url_safe:
        text = text.str.replace_all("-", "+", literal=True).str.replace_all("_", "/", literal=True)
    lengths = text.str.len_bytes()
    missing = (_BASE64_GROUP - lengths % _BASE64_GROUP) % _BASE64_GROUP
    if (missing.sum() or 0) > 0:
        padded = pl.DataFrame({"text": text, "length": lengths + missing})
        text = padded.select(pl.concat_str(pl.col("text"), pl.lit("===")).str.slice(0, pl.col("length")))["text"]
    decoded = text.str.decode("base64", strict=False)
    return _decoded(column, decoded, name, "is not base64, in which binary values and decimals are written")


def of_hex(column: pa.Array, name: str) -> Converted:
    """Decode hexadecimal digits."""
    decoded = pl.Series(pl.from_arrow(column)).str.decode("hex", strict=False)
    return _decoded(column, decoded, name, "is not hexadecimal; check debezium.binary-handling-mode")


def of_bits(column: pa.Array, of: DataType, name: str) -> Converted | None:
    """Convert BIT strings (binary, lowest byte first) to a BIGINT, or leave them bytes; None for other types."""
    if of.root in (TypeRoot.BINARY, TypeRoot.VARBINARY):
        return Converted(column)
    if of.root is not TypeRoot.BIGINT:
        return None
    padded = pl.Series(pl.from_arrow(column)).bin.slice(0, _LONG_BYTES) + pl.Series([b"\0" * _LONG_BYTES])
    words = padded.bin.slice(0, _LONG_BYTES).bin.reinterpret(dtype=pl.UInt64, endianness="little")
    rest = pl.Series(pl.from_arrow(column)).bin.slice(_LONG_BYTES)
    is_long = (rest.bin.encode("hex").str.strip_chars("0") != "").fill_null(value=False).to_numpy()
    numbers = words.fill_null(0).to_numpy()
    mask = (is_long | (numbers > np.iinfo(np.int64).max)) & valid(column)
    array = pa.array(np.where(mask, 0, numbers).astype(np.int64), mask=mask | ~valid(column))
    return Converted(array, refused(column, mask, name, "has more than 63 bits; make the column BYTES"))


def _decoded(column: pa.Array, decoded: pl.Series, name: str, why: str) -> Converted:
    array = decoded.to_arrow().cast(pa.binary())
    mask = valid(column) & ~valid(array)
    return Converted(array, refused(column, mask, name, why))
