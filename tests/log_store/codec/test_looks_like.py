"""Envelopes where rows were expected."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib.log_store.codec.looks_like import refuse_other_format

PARTS = '"before":null,"after":{"id":1},"source":{},"op":"c","ts_ms":1'
MAXWELL = '{"database":"d","table":"t","type":"insert","ts":1,"data":{"id":1}}'


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (f"{{{PARTS}}}", ["id", "v"]),
        (f"{{{PARTS}}}", ["id", "source"]),
        (f"{{{PARTS}}}", ["id", "op"]),
        (f'{{"transaction":null,{PARTS}}}', ["id"]),
        (f'{{"ts_us":1,{PARTS}}}', ["id"]),
        (f'{{"schema":{{}},"payload":{{{PARTS}}}}}', ["id", "payload"]),
        (MAXWELL, ["id", "type"]),
    ],
)
def test_an_envelope_is_no_row_whatever_the_columns_are_called(text: str, columns: list[str]) -> None:
    with pytest.raises(ValueError, match="not a row"):
        refuse_other_format(pa.array([text]), columns)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('{"op":"c","before":"x","after":"y"}', ["op", "before", "after"]),
        (f'{{"v":1,{PARTS}}}', ["v"]),
        ('{"source":"web","id":1}', ["id", "source"]),
        ('{"schema":"s","payload":"p"}', ["schema", "payload"]),
        (MAXWELL, ["database", "table", "type", "data"]),
        ('{"id":1}', ["id"]),
    ],
)
def test_a_row_whose_columns_have_such_names_is_one(text: str, columns: list[str]) -> None:
    refuse_other_format(pa.array([text]), columns)
