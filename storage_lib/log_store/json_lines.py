"""JSON objects as texts -> lines that Arrow's JSON reader takes one by one, whatever foreign writers put into them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

_MAY_FOLLOW_BRACE = np.zeros(256, bool)
_MAY_FOLLOW_BRACE[np.frombuffer(b",}]\n", np.uint8)] = True
_NOT_FINITE_MARKS = (b'"NaN', b"Infinity")


def json_lines(text: pa.Array) -> bytes:
    """A string array without nulls as lines, each ended by a line feed."""
    lines = pc.binary_join_element_wise(text, "", "\n")
    end = np.frombuffer(lines.buffers()[1], np.int32)[len(lines)]
    return bytes(memoryview(lines.buffers()[2])[:end])


def needs_care(text: pa.Array, lines: bytes) -> bool:
    """A quick look that may be wrong to the safe side: is there anything our own writers rarely or never make?"""
    is_object = pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))
    return (
        not pc.all(is_object).as_py()
        or lines.count(b"\n") != len(text)
        or may_hold_not_finite(lines)
        or not _is_after_brace(lines).all()
    )


def may_hold_not_finite(lines: bytes) -> bool:
    """Whether there may be a "NaN" or an infinity, which are strings where a number is expected."""
    return any(mark in lines for mark in _NOT_FINITE_MARKS)


def one_line_each(text: pa.Array) -> pa.Array:
    """Refuse what is not one JSON object, and what the parser would take for several or crash on.

    The parser reads a stream of objects, and a bare ``null`` between two of them crashes it (seen in pyarrow 26). A
    value that starts with ``{`` and ends with ``}`` can't run into its neighbours, so only the others, which our own
    writers never make, are looked at one by one.
    """
    suspects = pc.or_(
        pc.invert(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))),
        pc.match_substring_regex(text, r"\n|\}\s*null"),
    )
    for value in text.filter(suspects).to_pylist():
        if not isinstance(json.loads(value), dict):
            message = "not a JSON object"
            raise ValueError(message)  # noqa: TRY004  the value is wrong, not an argument's type
    return pc.utf8_trim_whitespace(pc.replace_substring(text, "\n", " "))


def parsed_objects(text: pa.Array, columns: pa.Schema) -> list[pa.Array]:
    """The columns of JSON objects (a string array without nulls); ``ValueError`` for what is no object of them."""
    if not len(text):
        return [pa.nulls(0, column.type) for column in columns]
    lines = json_lines(text)
    if needs_care(text, lines):
        lines = json_lines(one_line_each(text))
    table = pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore"),
    )
    if len(table) != len(text):
        message = "more than one JSON object"
        raise ValueError(message)
    return [table.column(name).combine_chunks() for name in columns.names]


def _is_after_brace(lines: bytes) -> np.ndarray:
    """For every closing brace, even one in a string: whether one of ``,`` ``}`` ``]`` or a line feed follows."""
    data = np.frombuffer(lines, np.uint8)
    following = data[np.flatnonzero(data[:-1] == ord("}")) + 1]
    return _MAY_FOLLOW_BRACE[following]
