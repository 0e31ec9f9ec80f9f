"""Every error of a verb that changes a table says whether the change has happened."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from storage_lib.errors import CommitOutcomeUnknownError, note_outcome

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


def tells_outcome(verb: Callable[_Parameters, _Answer]) -> Callable[_Parameters, _Answer]:
    """Give every exception of ``verb`` an attribute ``committed``, unless it has one.

    False for errors: nothing behind the commit point raises (``after_commit``). None where the answer was lost, and for
    an interrupt, which may come at any moment.
    """

    @functools.wraps(verb)
    def telling(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Answer:
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

    return telling


@contextmanager
def outcome(*, committed: bool | None) -> Iterator[None]:
    """Say of whatever the body raises that the change has happened, or that nobody knows."""
    try:
        yield
    except BaseException as error:
        note_outcome(error, committed=committed)
        raise
