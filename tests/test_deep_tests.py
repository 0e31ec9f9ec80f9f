"""Which tests a run takes, and in which slice of sixteen a deep one is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.deep_tests import SLICES, crossed, each_value_once, is_selected, slice_of, thinned

REPOSITORY = Path(__file__).parents[1]


def is_deep(parameter: Any) -> bool:
    return any(mark.name == "deep" for mark in getattr(parameter, "marks", ()))


def test_sixteen_slices_hold_every_deep_test_once_and_no_other() -> None:
    ids = [f"tests/a.py::test_{n}" for n in range(1000)]

    taken = [
        [each for each in ids if is_selected(each, is_deep=True, deep=False, chosen=chosen)]
        for chosen in range(1, SLICES + 1)
    ]

    assert sorted(each for slice_ in taken for each in slice_) == sorted(ids)
    assert min(map(len, taken)) > len(ids) / SLICES / 2
    assert not any(is_selected(each, is_deep=False, deep=False, chosen=slice_of(each)) for each in ids)


def test_a_test_stays_in_its_slice() -> None:
    assert [slice_of(f"tests/a.py::test_b[{n}]") for n in range(4)] == [4, 3, 2, 1]


@pytest.mark.parametrize(("deep", "count"), [(False, 1), (True, 2)])
def test_only_a_deep_run_takes_deep_tests(deep: bool, count: int) -> None:  # noqa: FBT001  a parameter of the test
    taken = [is_selected("tests/a.py::test_b", is_deep=each, deep=deep, chosen=None) for each in (False, True)]

    assert taken.count(True) == count
    assert taken[0]


def test_thinned_values_are_deep_but_for_the_first_or_those_to_keep() -> None:
    assert [is_deep(each) for each in thinned(range(4), keep=2)] == [False, False, True, True]
    assert [is_deep(each) for each in thinned("abc", keep=lambda value: value == "b")] == [True, False, True]

    named = thinned([pytest.param(1, id="one"), pytest.param(2, id="two", marks=pytest.mark.kafka)])[1]
    assert (named.id, named.values, {mark.name for mark in named.marks}) == ("two", (2,), {"kafka", "deep"})


def test_combinations_without_a_new_value_are_deep() -> None:
    rows = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]

    assert [is_deep(each) for each in each_value_once(rows)] == [False, False, False, True]


def test_each_value_of_crossed_parameters_is_in_a_combination_that_is_not_deep() -> None:
    combinations = crossed("abc", [1, 2], [True])

    assert [each.values for each in combinations] == [(a, n, True) for a in "abc" for n in (1, 2)]
    assert [each.values for each in combinations if not is_deep(each)] == [
        ("a", 1, True),
        ("b", 2, True),
        ("c", 1, True),
    ]


def test_a_slice_can_be_added_to_the_tests_that_are_not_deep() -> None:
    ids = [f"tests/a.py::test_{n}" for n in range(100)]

    taken = [each for each in ids if is_selected(each, is_deep=True, deep=False, added=3)]

    assert taken == [each for each in ids if slice_of(each) == 3]
    assert all(is_selected(each, is_deep=False, deep=False, added=3) for each in ids)


@pytest.mark.parametrize("option", ["--slice", "--with-slice", "--part"])
def test_a_slice_that_does_not_exist_is_refused(option: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", option, "17", __file__]

    refused = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"argument {option}: invalid choice: 17 (choose from 1, 2, 3, " in refused.stderr
