"""Values of one meaning have one form, however Arrow lays them out."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib.verification.column_kind import kind_of_arrow
from storage_lib.verification.common_values import common_values

VALUES = [[1, None], None, [], [2, 3]]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


@pytest.mark.parametrize("list_of", LISTS)
def test_lists_of_every_layout_have_the_same_form(list_of: object) -> None:
    array = pa.array([[9], *VALUES, [9]], list_of(pa.int64())).slice(1, 4)  # type: ignore[operator]
    kind = kind_of_arrow(array.type)
    assert kind is not None

    assert common_values(array, kind, "a", "the table").to_list() == ["[1,null]", None, "[]", "[2,3]"]


def test_maps_with_the_same_entries_have_the_same_form() -> None:
    type_ = pa.map_(pa.string(), pa.int64())
    array = pa.array([[("z", 9)], [("b", 2), ("a", None)], None, [("a", None), ("b", 2)], []], type_).slice(1)
    kind = kind_of_arrow(type_)
    assert kind is not None

    first, null, second, empty = common_values(array, kind, "m", "the table").to_list()

    assert first == second
    assert (null, empty) == (None, "[]")
