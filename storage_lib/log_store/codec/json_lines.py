"""Prepare JSON objects for Arrow's JSON reader, and reject texts that the reader would misread."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

_OPENING, _CLOSING = ord("{"), ord("}")
_MAY_FOLLOW_BRACE = np.zeros(256, bool)
_MAY_FOLLOW_BRACE[np.frombuffer(b",}]{", np.uint8)] = True
_NOT_AN_OBJECT = "not a JSON object"
_NOT_FINITE_MARKS = (b'"NaN"', b'Infinity"')


def plain_objects(text: pa.Array) -> bytes | None:
    """Concatenate the texts (strings without nulls) if each is certainly one JSON object on one line.

    Returns None if a text has a form that our own writers rarely or never emit. Arrow's reader needs no line feeds
    between objects: a text that starts with ``{`` and ends with ``}`` can't merge with its neighbours.
    """
    offsets = _offsets(text)
    if not np.diff(offsets).all():
        return None
    texts = bytes(memoryview(text.buffers()[2])[offsets[0] : offsets[-1]])
    data = np.frombuffer(texts, np.uint8)
    starts, ends = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    if (data[starts] != _OPENING).any() or (data[ends - 1] != _CLOSING).any() or b"\n" in texts:
        return None
    # Every closing brace, even one in a string, must be followed by , } or ], and by { between two texts only.
    following = data[np.flatnonzero(data[:-1] == _CLOSING) + 1]
    is_plain = _MAY_FOLLOW_BRACE[following].all() and np.count_nonzero(following == _OPENING) == len(text) - 1
    return texts if is_plain else None


def all_start_with(text: pa.Array, prefix: bytes) -> bool:
    """Whether every text (strings without nulls) starts with ``prefix``."""
    offsets = _offsets(text)
    if (np.diff(offsets) < len(prefix)).any():
        return False
    heads = np.lib.stride_tricks.sliding_window_view(np.frombuffer(text.buffers()[2], np.uint8), len(prefix))
    return bool((heads[offsets[:-1]] == np.frombuffer(prefix, np.uint8)).all())


def json_lines(text: pa.Array) -> bytes:
    """Join a string array without nulls as lines, each ended by a line feed."""
    lines = pc.binary_join_element_wise(text, "", "\n")
    end = np.frombuffer(lines.buffers()[1], np.int32)[len(lines)]
    return bytes(memoryview(lines.buffers()[2])[:end])


def _offsets(text: pa.Array) -> np.ndarray:
    """Return the position of each text in the array's data, and the end of the last one."""
    return np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]


def may_hold_not_finite(lines: bytes) -> bool:
    """Whether the lines may hold a "NaN" or an infinity, which are strings in place of numbers."""
    return any(mark in lines for mark in _NOT_FINITE_MARKS)


def one_line_each(text: pa.Array) -> pa.Array:
    """Reject texts that are not one JSON object; replace line feeds and trim the others.

    The parser reads a stream of objects, and a bare ``null`` between two of them crashes it (seen in pyarrow 26). A
    value that starts with ``{`` and ends with ``}`` can't merge with its neighbours, so only other values, which our
    own writers never emit, are checked one by one.
    """
    suspects = pc.or_(
        pc.invert(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))),
        pc.match_substring_regex(text, r"\n|\}\s*null"),
    )
    for value in text.filter(suspects).to_pylist():
        if not isinstance(json.loads(value), dict):
            raise ValueError(_NOT_AN_OBJECT)  # noqa: TRY004  the value is wrong, not an argument's type
    return pc.utf8_trim_whitespace(pc.replace_substring(text, "\n", " "))


def broken_objects(values: pa.Array) -> dict[int, str]:
    """Return by index why values (bytes) are not JSON objects; nulls, and the JSON ``null``, are left to the caller."""
    found: dict[int, str] = {}
    for index, value in enumerate(values.to_pylist()):
        try:
            parsed = {} if value is None else json.loads(value)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            found[index] = str(error)
            continue
        except (ValueError, RecursionError):
            continue  # a long number or deep nesting, perhaps in a column that is not read
        if not isinstance(parsed, dict | None):
            found[index] = _NOT_AN_OBJECT
    return found


def parsed_objects(text: pa.Array, columns: pa.Schema) -> list[pa.Array]:
    """Return the columns of JSON objects (a string array without nulls); ``ValueError`` for any other value."""
    if not len(text):
        return [pa.nulls(0, column.type) for column in columns]
    objects = plain_objects(text)
    table = read_objects(json_lines(one_line_each(text)) if objects is None else objects, len(text), columns)
    return [table.column(name).combine_chunks() for name in columns.names]


def read_objects(objects: bytes, count: int, columns: pa.Schema) -> pa.Table:
    """Parse ``count`` objects with Arrow's JSON reader; ignore keys that are not in ``columns``.

    Raises ``ValueError`` if it finds more or fewer objects.
    """
    table = pj.read_json(
        pa.BufferReader(objects),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(objects) + 1),
        parse_options=pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore"),
    )
    if len(table) != count:
        message = "more than one JSON object"
        raise ValueError(message)
    return table
