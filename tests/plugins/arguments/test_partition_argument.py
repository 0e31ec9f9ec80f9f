"""Rendered templates of a partition are validated before they reach a table."""

from __future__ import annotations

from datetime import date

import pytest

from dynamic_table.arguments.partition_argument import checked_partition, checked_partitions
from storage_lib.errors import InvalidInputError


@pytest.mark.parametrize("value", ["", "  ", None, "None", "none", "null", "nan", "undefined"])
def test_a_value_rendered_from_nothing_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"'dt'.*partition key"):
        checked_partition({"dt": value})


@pytest.mark.parametrize("partition", [None, {}, "dt=2024-05-14", [("dt", "x")]])
def test_what_is_no_mapping_is_refused(partition: object) -> None:
    with pytest.raises(InvalidInputError, match="mapping"):
        checked_partition(partition)


@pytest.mark.parametrize("partitions", [None, [], "None", 3])
def test_an_empty_list_of_partitions_is_refused(partitions: object) -> None:
    with pytest.raises(InvalidInputError, match="list of mappings"):
        checked_partitions(partitions)


def test_one_partition_may_be_named_without_a_list() -> None:
    assert checked_partitions({"dt": "2024-05-14"}) == [{"dt": "2024-05-14"}]


def test_values_become_text_whatever_a_native_template_made_of_them() -> None:
    asked = [{"dt": date(2024, 5, 14), "hour": 7, "live": True}, {"dt": "2024-05-15", "hour": "8", "live": "false"}]

    assert checked_partitions(asked) == [
        {"dt": "2024-05-14", "hour": "7", "live": "true"},
        {"dt": "2024-05-15", "hour": "8", "live": "false"},
    ]
