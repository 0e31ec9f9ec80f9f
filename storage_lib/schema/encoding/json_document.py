"""Decoding of JSON metadata: every defect of the bytes becomes one error that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from storage_lib.errors import CorruptFileError

T = TypeVar("T")

UNDECODABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, OverflowError)
"""What ``json.loads``, and code that takes its result apart, raises for bytes that are not the expected document:
not UTF-8, not JSON, nested too deep, another shape, a number out of range."""


_INT64 = range(-(2**63), 2**63)


def int64(value: Any) -> int:
    """``value`` as an integer; ``ValueError`` if it does not fit 64 bits, as other engines store it."""
    number = int(value)
    if number not in _INT64:
        message = f"{number} does not fit 64 bits"
        raise ValueError(message)
    return number


def decode_json(data: bytes | str, build: Callable[[Any], T], describe: Callable[[str], str]) -> T:
    """Parse ``data`` and return what ``build`` makes of the document.

    Raises ``CorruptFileError`` with the message that ``describe`` makes of the defect; it has to name the file.
    """
    try:
        return build(json.loads(data))
    except UNDECODABLE as error:
        raise CorruptFileError(describe(f"{type(error).__name__}: {error}")) from error
