"""Find the known word closest to a misspelled one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LIKE_ENOUGH = 0.6


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the nearest known word, else ``; there are a, b, c`` (empty: none)."""
    names = list(known)
    near = nearest(word, names)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; there are {', '.join(names)}" if names else "; there are none"


def nearest(word: str, known: Iterable[str], *, like_enough: float = _LIKE_ENOUGH) -> str | None:
    """The known word that comes nearest, whatever its case; None if none is ``like_enough`` (1: the same)."""
    by_lower_case = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=like_enough)
    return by_lower_case[near[0]] if near else None
