"""Errors form a tree whose branches say what to do next; the drawing in ``errors.py`` is that tree."""

from __future__ import annotations

import pickle
import re

import pytest

import storage_lib
from storage_lib import errors
from storage_lib.errors import PermanentError, RetryableError, StorageError

CLASSES = [getattr(errors, name) for name in errors.__all__]
LEAVES = [each for each in CLASSES if each not in (StorageError, RetryableError, PermanentError)]
RETRYABLE = {"CommitConflictError", "LeaseLostError", "UnavailableError", "CommitOutcomeUnknownError"}


def test_every_error_is_in_the_list_and_public() -> None:
    defined = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    assert defined == set(errors.__all__)
    assert defined <= set(storage_lib.__all__)


@pytest.mark.parametrize("error", LEAVES)
def test_every_error_says_whether_to_run_the_same_call_again(error: type[StorageError]) -> None:
    expected = RetryableError if error.__name__ in RETRYABLE else PermanentError
    assert error.__bases__ == (expected,)
    assert expected.__bases__ == (StorageError,)


def test_the_drawing_is_the_tree() -> None:
    drawn = re.findall(r"^( *[│├└── ]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    depths = sorted({len(indent) for indent, _ in drawn})
    branch = ""
    tree: dict[str, str] = {}
    for indent, name in drawn:
        depth = depths.index(len(indent))
        if depth == 1:
            branch = name
        tree[name] = "Exception" if depth == 0 else "StorageError" if depth == 1 else branch
    assert tree == {each.__name__: each.__bases__[0].__name__ for each in CLASSES}


@pytest.mark.parametrize("error", CLASSES)
def test_an_error_survives_the_way_from_a_worker(error: type[StorageError]) -> None:
    raised = error("table shop.orders: column 'price' is text; cast it to DOUBLE")
    received = pickle.loads(pickle.dumps(raised))  # noqa: S301  our own bytes
    assert type(received) is error
    assert str(received) == str(raised)


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_tells_its_meaning(error: type[StorageError]) -> None:
    assert error.__name__.endswith("Error")
    assert error.__doc__
