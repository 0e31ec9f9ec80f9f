"""Regular expressions that take linear time, so that a form may choose them.

Python's ``re`` and Java's expressions try alternatives one by one, and some expressions take exponential time of the
length of a value: ``^(a+)+$``. RE2, which Arrow contains, does not; it has neither look-around nor back-references.
An expectation with ``regex_syntax: re2`` is evaluated by RE2; those of forms always are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["PYTHON", "RE2", "REGEX_SYNTAX", "evaluated_by_re2", "is_of_re2", "problem_of_re2", "with_re2"]

REGEX_SYNTAX = "regex_syntax"
RE2, PYTHON = "re2", "python"
_ARGUMENTS = ("regex", "regex_list")

_of_re2: ContextVar[frozenset[str]] = ContextVar("expressions that RE2 evaluates", default=frozenset())


def problem_of_re2(expression: str) -> str | None:
    """Return why RE2 can't evaluate the expression; None if it can."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), expression)
    except (pa.ArrowInvalid, UnicodeError) as error:
        return str(error)
    return None


def with_re2(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the expectation of a form, evaluated by RE2 if it contains a regular expression."""
    return {**spec, REGEX_SYNTAX: RE2} if _expressions(spec) else dict(spec)


@contextmanager
def evaluated_by_re2(specs: Iterable[Mapping[str, Any]]) -> Iterator[None]:
    """Let RE2 evaluate the expressions of the expectations that ask for it, while Great Expectations runs."""
    expressions = frozenset(each for spec in specs if spec.get(REGEX_SYNTAX) == RE2 for each in _expressions(spec))
    if expressions:
        # It warns of each metric that another one replaces.
        logging.getLogger("great_expectations.expectations.registry").setLevel(logging.ERROR)
        import dynamic_table.quality.linear_metrics  # noqa: F401  registers itself with Great Expectations
    token = _of_re2.set(expressions)
    try:
        yield
    finally:
        _of_re2.reset(token)


def is_of_re2(expression: str) -> bool:
    """Whether RE2 evaluates the expression in the validation that runs."""
    return expression in _of_re2.get()


def _expressions(spec: Mapping[str, Any]) -> list[str]:
    arguments = spec.get("kwargs")
    given = [arguments.get(name) for name in _ARGUMENTS] if isinstance(arguments, Mapping) else []
    return [text for each in given for text in (each if isinstance(each, list | tuple) else [each]) if text is not None]
