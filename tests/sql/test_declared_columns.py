"""Computed columns that a form declares call listed functions only, however their text is disguised."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from storage_lib.errors import InvalidInputError
from storage_lib.sql.definition.virtual_columns import refuse_reaching_out


def declare(expression: str) -> None:
    refuse_reaching_out("db.t", {"column.x.expression": expression})


@pytest.mark.parametrize(
    "expression",
    [
        "xpath_string(s, 'r')",
        "from_xml(s, 'a STRING', map('rowValidationXSDPath', 'http://127.0.0.1/x.xsd'))",
        "upper(schema_of_xml(s))",
        "Reflect('java.lang.System', 'exit', '1')",
        "`reflect`('java.lang.System', 'exit', '1')",
        '"reflect"(s)',
        "system.builtin.reflect('a')",
        "somebody.upper(s)",
        "IDENTIFIER('ref' || 'lect')('a')",
        "reflect /**/ ('a')",
        "1 -- '\n || reflect('a') -- '",
        r"r'\' || reflect('a') || '\'",
        r"'\\' || reflect('a') || '\\'",
        "a_function_of_a_newer_spark(s)",
        "input_file_name()",
        "'${env:HOME}'",
        "(SELECT max(v) FROM u)",
        "1) AS y, (2",
    ],
)
def test_what_reaches_out_of_the_table_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInputError, match="more than an expression"):
        declare(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "extract(YEAR FROM day) + coalesce(round(price, 2), id % 7)",
        "CASE WHEN (a > 1) THEN upper(b) WHEN (c) THEN ('it''s') ELSE ('(x)') END",
        "a IN (1, 2) AND NOT (b) OR (c BETWEEN (1) AND (2))",
        "CAST(a AS DECIMAL(10, 2)) + a::DECIMAL(3, 1) * -(1)",
        "transform(arr, x -> x + (1))",
        "row_number() OVER (PARTITION BY (a) ORDER BY (b))",
        r"regexp_extract(s, '\\d+', 0)",
        "from_json(s, 'a INT').a",
    ],
)
def test_expressions_over_columns_are_declared(expression: str) -> None:
    declare(expression)
