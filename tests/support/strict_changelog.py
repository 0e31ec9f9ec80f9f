"""Strict application of a complete changelog: removed rows must exist exactly as given, inserted keys must not."""

from __future__ import annotations

from collections.abc import Iterable


def strictly_applied(changes: Iterable[str], start: Iterable[str] = ()) -> set[str]:
    """Return the rows that result from ``start`` (each ``"a 1 10"``) and ``changes`` (``"-U a 1 10"``), in order.

    Raise ``AssertionError`` for a change that contradicts the rows before it, or an update without its other half.
    """
    there = {_key(row): row for row in start}
    awaited: tuple[str, ...] | None = None
    for change in changes:
        kind, row = change.split(maxsplit=1)
        key = _key(row)
        if kind == "+U":
            assert awaited == key, f"{change} does not follow its -U"
            awaited = None
        else:
            assert awaited is None, f"{change} stands between -U and +U of {awaited}"
        if kind in ("-U", "-D"):
            assert there.pop(key, None) == row, f"{change} removes a row that does not exist"
            awaited = key if kind == "-U" else None
        else:
            assert key not in there, f"{change} inserts an existing key: {there[key]}"
            there[key] = row
    assert awaited is None
    return set(there.values())


def told(changes: Iterable[str]) -> list[str]:
    """Return the expected changelog of ``changes`` on an empty table, computed key by key in plain Python."""
    there: dict[tuple[str, ...], str] = {}
    complete: list[str] = []
    for change in changes:
        kind, row = change.split(maxsplit=1)
        old = there.pop(_key(row), None)
        if kind in ("+I", "+U"):
            there[_key(row)] = row
            complete += [f"+I {row}"] if old is None else [f"-U {old}", f"+U {row}"]
        elif old is not None:
            complete.append(f"-D {old}")
    return complete


def _key(row: str) -> tuple[str, ...]:
    return tuple(row.split()[:-1])
