"""Rendered templates of operators' arguments: converted to their types, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamic_table.arguments.rendered_argument import (
    checked_choice,
    checked_count,
    checked_flag,
    checked_mapping,
    checked_names,
    checked_number,
    checked_options,
    checked_text,
    is_nothing,
)
from storage_lib.errors import InvalidInputError


@pytest.mark.parametrize(("value", "meant"), [(True, True), (False, False), ("False", False), (" true ", True)])
def test_a_flag_is_taken_as_it_was_meant_also_as_text(value: object, *, meant: bool) -> None:
    assert checked_flag(value, "full") is meant


@pytest.mark.parametrize("value", ["3", 3, " 3 "])
def test_a_number_may_be_text(value: object) -> None:
    assert checked_count(value, "retain_last", least=1) == 3
    assert checked_number(value, "hours") == 3.0


def test_lists_and_mappings_keep_what_they_hold() -> None:
    assert checked_names(["a", "b"], "select") == ("a", "b")
    assert checked_names(None, "select") == ()
    assert checked_mapping({"id": 1}, "rows_kwargs") == {"id": 1}
    assert checked_mapping(None, "rows_kwargs") == {}


def test_option_values_are_spelled_as_the_library_reads_them() -> None:
    assert checked_options({"write-only": True, "bucket": 2, "a": "b"}, "options") == {
        "write-only": "true",
        "bucket": "2",
        "a": "b",
    }


@pytest.mark.parametrize(("value", "nothing"), [(None, True), ("", True), ("None", True), (0, False), ("x", False)])
def test_nothing_is_what_a_template_renders_without_its_parameter(value: object, *, nothing: bool) -> None:
    assert is_nothing(value) is nothing


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checked_flag, None),
        (checked_flag, "yes"),
        (checked_flag, 1),
        (checked_count, "2.5"),
        (checked_count, -1),
        (checked_count, True),
        (checked_number, "soon"),
        (checked_number, None),
        (checked_number, float("nan")),
        (checked_number, float("inf")),
        (checked_text, ""),
        (checked_text, "None"),
        (checked_text, None),
        (checked_text, 7),
        (checked_names, "id"),
        (checked_names, "['id']"),
        (checked_names, [""]),
        (checked_names, [1]),
        (checked_mapping, "{'id': 'INT'}"),
        (checked_mapping, ["id"]),
        (checked_mapping, {"": 1}),
        (checked_mapping, {1: 1}),
        (checked_options, {"bucket": None}),
        (checked_options, {"bucket": [1]}),
    ],
)
def test_what_is_something_else_is_refused_by_name_with_the_remedy(check: Callable[..., Any], value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^some_argument.*render_template_as_native_obj=True"):
        check(value, "some_argument")


def test_a_choice_is_one_of_those_there_are() -> None:
    checked_choice("skip", "on_empty", ("fail", "skip"))

    with pytest.raises(InvalidInputError, match="on_empty is 'Skip'; it has to be one of fail, skip"):
        checked_choice("Skip", "on_empty", ("fail", "skip"))
