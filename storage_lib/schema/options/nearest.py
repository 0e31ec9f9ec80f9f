"""Find the known word closest to a misspelled one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LIKE_ENOUGH = 0.6


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the nearest known word, otherwise ``; there are a, b, c`` or ``none``."""
    names = list(known)
    near = nearest(word, names)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; there are {', '.join(names)}" if names else "; there are none"


def nearest(word: str, known: Iterable[str], *, like_enough: float = _LIKE_ENOUGH) -> str | None:
    """Return the nearest known word, ignoring case; None if no similarity reaches ``like_enough`` (1: equal)."""
    by_lower_case = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=like_enough)
    return by_lower_case[near[0]] if near else None
