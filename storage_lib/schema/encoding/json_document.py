"""Decode JSON metadata; every defect becomes one error that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from storage_lib.errors import CorruptFileError

T = TypeVar("T")

UNDECODABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, OverflowError)
"""Errors that ``json.loads``, and code that reads its result, raises for anything but the expected document.

For example, bytes that are not UTF-8 or not JSON, excessive nesting, another structure, a number out of range.
"""


_INT64 = range(-(2**63), 2**63)


def int64(value: Any) -> int:
    """Return ``value`` as an integer. Raises ``ValueError`` if it exceeds 64 bits, other engines' size."""
    number = int(value)
    if number not in _INT64:
        message = f"{number} does not fit 64 bits"
        raise ValueError(message)
    return number


def decode_json(data: bytes | str, build: Callable[[Any], T], describe: Callable[[str], str]) -> T:
    """Parse ``data`` and return the result of ``build`` for the document.

    Raises ``CorruptFileError`` with the message that ``describe`` returns for a defect; it has to name the file.
    """
    try:
        return build(json.loads(data))
    except UNDECODABLE as error:
        raise CorruptFileError(describe(f"{type(error).__name__}: {error}")) from error
