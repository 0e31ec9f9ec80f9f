"""Records on every error of a verb that changes a table whether the change was committed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from storage_lib.errors import CommitOutcomeUnknownError, note_outcome

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


def reports_outcome(verb: Callable[_Parameters, _Answer]) -> Callable[_Parameters, _Answer]:
    """Set the attribute ``committed`` on every exception of ``verb`` that lacks it.

    False for errors: code after the commit point does not raise (``after_commit``). None if the response was lost, and
    for an interrupt, which may come at any time.
    """

    @functools.wraps(verb)
    def reporting(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Answer:
        try:
            return verb(*arguments, **named)
        except CommitOutcomeUnknownError as error:
            note_outcome(error, committed=None)
            raise
        except Exception as error:
            note_outcome(error, committed=False)
            raise
        except BaseException as interrupt:
            note_outcome(interrupt, committed=None)
            raise

    return reporting


@contextmanager
def outcome(*, committed: bool | None) -> Iterator[None]:
    """Record on exceptions of the body whether the change was committed (None: unknown)."""
    try:
        yield
    except BaseException as error:
        note_outcome(error, committed=committed)
        raise
