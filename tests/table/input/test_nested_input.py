"""Accepted nested values, and values refused with the path of the invalid part."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError
from storage_lib.schema.table_schema import TableSchema
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
