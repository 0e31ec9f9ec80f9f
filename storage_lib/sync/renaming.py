"""Regular expressions that give a topic's table its name, in RE2's syntax.

RE2 never needs more time than the length of the name, whatever expression a form contains. In return it has neither
look-around nor references to groups in expressions.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError

_REFERENCE = re.compile(r"\\g<(\w+)>")


def check_expression(expression: str) -> None:
    """Raise ``InvalidInputError`` for an expression that RE2 does not know."""
    try:
        _matches(expression, "")
        re.compile(expression)
    except (pa.ArrowInvalid, re.error) as error:
        message = f"rename: {expression!r} is not a regular expression of RE2's syntax: {error}"
        raise InvalidInputError(message) from error


def renamed(expression: str, replacement: str, name: str) -> str | None:
    """Return the new name, None if the expression does not match all of ``name``.

    ``replacement`` names groups as in ``re.sub``, by number or name. Raises ``InvalidInputError`` for one that does not
    fit.
    """
    if not _matches(expression, name):
        return None
    groups = re.compile(expression).groupindex
    numbered = _REFERENCE.sub(lambda found: f"\\{groups.get(found[1], found[1])}", replacement)
    try:
        new = pc.replace_substring_regex(name, pattern=_whole(expression), replacement=numbered)
    except pa.ArrowInvalid as error:
        message = f"rename: {replacement!r} does not fit {expression!r}: {error}"
        raise InvalidInputError(message) from error
    return str(new.as_py())


def _matches(expression: str, name: str) -> bool:
    return bool(pc.match_substring_regex(name, pattern=_whole(expression)).as_py())


def _whole(expression: str) -> str:
    return rf"\A(?:{expression})\z"
