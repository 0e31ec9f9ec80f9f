"""Accepted nested values, and values refused with the path of the invalid part."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib import InvalidInputError
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.nested_arrays import as_list
from storage_lib.table.input.input_rows import InputRows
from tests.support.schemas import schema_of

SCHEMA = schema_of(
    "id INT, tags ARRAY<VARCHAR(3) NOT NULL>, r ROW<a INT NOT NULL, b STRING>, m MAP<STRING, INT NOT NULL>, "
    "s MULTISET<STRING>",
    key="id",
)


def _conform(schema: TableSchema = SCHEMA, **columns: Any) -> pa.RecordBatch:
    rows = pa.RecordBatch.from_pydict({"id": pa.array([1, 2, 3]), **columns})
    return InputRows("db.t", schema, "_row_kind").conform(rows)[0]


def test_parts_are_widened_and_reordered_and_missing_ones_are_null() -> None:
    rows = _conform(
        tags=pa.array([["a"], None, ["b", "c"]], pa.large_list(pa.large_string())),
        r=pa.array([{"a": 1}, None, {"a": 2}], pa.struct([("a", pa.int64())])),
    )

    assert rows.schema == SCHEMA.arrow_schema
    assert rows.column("tags").to_pylist() == [["a"], None, ["b", "c"]]
    assert rows.column("r").to_pylist() == [{"a": 1, "b": None}, None, {"a": 2, "b": None}]
    assert rows.column("m").null_count == 3


def test_a_slice_with_elements_hidden_behind_nulls_is_taken_as_what_it_shows() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4, 5], pa.int32()),
        pa.array(["x", "long one", None, "a", "b"]),
        mask=pa.array([False, True, False, False]),
    )

    rows = _conform(tags=hidden.slice(1))

    assert rows.column("tags").to_pylist() == [None, ["a"], ["b"]]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"tags": [["a", None], [], []]}, r"'tags.element' is VARCHAR\(3\) NOT NULL, but 1 of 2 have no value"),
        ({"tags": [["abcd"], [], []]}, r"'tags.element' is VARCHAR\(3\).*4 characters"),
        ({"tags": [[1], [], []]}, r"column 'tags'.*'tags.element' is VARCHAR\(3\) NOT NULL.*not int64.*Cast"),
        ({"tags": ["a", "b", "c"]}, r"column 'tags' is ARRAY.*has string"),
        ({"r": [{"a": None}, None, {"a": 2}]}, r"'r.a' is INT NOT NULL, but 1 of 3"),
        ({"r": [{"a": 2**40}, None, {"a": 2}]}, r"'r.a' is INT NOT NULL and can't hold every value"),
        ({"r": [{"a": 1, "x": 2}, None, None]}, r"'r' .*has no field 'x'"),
        ({"r": [{"b": "x"}, None, None]}, r"lacks the field 'a', which is INT NOT NULL"),
        (
            {"m": pa.array([[("k", None)], [], []], pa.map_(pa.string(), pa.int32()))},
            r"'m.value' is INT NOT NULL, but 1",
        ),
        ({"m": [{"k": 1}, None, None]}, r"column 'm' is MAP"),
        ({"s": pa.array([[("k", None)], [], []], pa.map_(pa.string(), pa.int32()))}, r"'s.value' is INT NOT NULL"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_path(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        _conform(**columns)


@given(st.lists(st.none() | st.lists(st.sampled_from("abc"), max_size=4), max_size=8), st.data())
def test_views_of_lists_are_taken_as_the_lists_that_they_show(
    values: list[list[str] | None], data: st.DataObject
) -> None:
    view = data.draw(st.sampled_from([pa.list_view(pa.string()), pa.large_list_view(pa.string())]))
    rows = pa.array(values, view)
    order = data.draw(st.permutations(range(len(values))))
    begin = data.draw(st.integers(0, len(values)))
    shown = rows.take(pa.array(order, pa.int64())).slice(begin)

    found = as_list(shown)

    found.validate(full=True)
    assert found.to_pylist() == [values[place] for place in order][begin:]


def test_bytes_that_are_no_text_are_refused() -> None:
    wrong = pa.Array.from_buffers(
        pa.binary(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff")]
    )
    schema = schema_of("id INT, v STRING, tags ARRAY<STRING>", key="id")

    for columns in (
        {"v": wrong.view(pa.string())},
        {"tags": pa.ListArray.from_arrays([0, 1], wrong.view(pa.string()))},
    ):
        rows = pa.RecordBatch.from_pydict({"id": pa.array([1]), **columns})
        with pytest.raises(InvalidInputError, match="no text"):
            InputRows("db.t", schema, "_row_kind").conform(rows)


@pytest.mark.parametrize("values", [[1.0, 1e300], [-1e39, None]])
def test_a_double_that_is_infinite_as_a_float_is_refused(values: list[float | None]) -> None:
    schema = schema_of("id INT, v FLOAT, tags ARRAY<FLOAT>", key="id")
    columns_given: list[dict[str, pa.Array]] = [{"v": pa.array(values)}, {"tags": pa.array([values, []])}]

    for columns in columns_given:
        rows = pa.RecordBatch.from_pydict({"id": pa.array([1, 2]), **columns})
        with pytest.raises(InvalidInputError, match="larger than any finite float"):
            InputRows("db.t", schema, "_row_kind").conform(rows)
    kept = pa.RecordBatch.from_pydict({"id": pa.array([1, 2, 3]), "v": pa.array([float("inf"), float("nan"), 3e38])})
    assert str(InputRows("db.t", schema, "_row_kind").conform(kept)[0].column("v").to_pylist()[:2]) == "[inf, nan]"
