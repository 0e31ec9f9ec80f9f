"""Text of a fix: an expression over one row that calls listed functions only, whoever writes it.

The text is read token by token before Polars sees it. A character or a word that is not listed here is refused, and so
is a call of anything but a listed name in plain spelling: Polars also calls names in quotes, and skips comments.
"""

from __future__ import annotations

import re
from itertools import pairwise

FUNCTIONS = frozenset(
    {
        *("abs", "ceil", "floor", "round", "sign", "greatest", "least", "coalesce", "ifnull", "nullif", "if", "cast"),
        *("concat", "left", "right", "length", "lower", "upper", "trim", "ltrim", "rtrim", "replace", "reverse"),
        *("substr", "substring", "starts_with", "ends_with", "strpos", "try_cast"),
    }
)
"""What a fix may call: fixes also come from forms."""

_SYNTAX = {"and", "or", "not", "in", "case", "when", "then", "else", "is", "like", "between"}
_TYPES = {"decimal", "numeric", "varchar", "char"}
_MAY_PRECEDE = FUNCTIONS | _SYNTAX | _TYPES
"""Words after which a parenthesis may follow."""
_OF_QUERIES = frozenset({"select", "from", "over"})
_TOKEN = re.compile(
    r"""\s+|'(?:[^']|'')*'|"[^"]+"|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[^\W\d]\w*|\|\||::|<=|>=|<>|!=|-(?!-)|/(?!\*)|[+*%=<>(),.]"""
)


def problem_of_fix(text: str) -> str | None:
    """Return what a fix contains that is not allowed; None if all is."""
    tokens, place = [""], 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            return f"{text[place : place + 10]!r} may not be in it"
        place = found.end()
        if not found[0].isspace():
            tokens.append(found[0])
    for word, after in pairwise([*tokens, ""]):
        if word.lower() in _OF_QUERIES:
            return f"it may not be a query ({word})"
        if after == "(" and _is_name(word) and word.lower() not in _MAY_PRECEDE:
            return f"{word} may not be called; use {', '.join(sorted(FUNCTIONS))}"
    return None


def _is_name(token: str) -> bool:
    return token[:1] in ('"', "'") or token[:1].isidentifier()
