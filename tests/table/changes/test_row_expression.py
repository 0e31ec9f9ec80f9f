"""A new value of a row depends on this row alone, regardless of its batch."""

from __future__ import annotations

import polars as pl
import pytest

from storage_lib.table.changes.row_expression import computed_by_row

FRAME = pl.DataFrame({"n": [3, 1, 2, None], "Rank": [4, 4, 5, 6], "s": ["a", "b", "Len", None]})


@pytest.mark.parametrize(
    "expression",
    [
        pl.col("n") * 2 + pl.col("Rank"),
        pl.lit("Len"),
        pl.col("s").fill_null("Shift"),
        pl.when(pl.col("n") > 1).then(pl.col("Rank")).otherwise(None),
        pl.col("s").str.to_uppercase(),
        pl.max_horizontal("n", "Rank"),
        pl.col("n").map_batches(lambda values: values + 1, return_dtype=pl.Int64),
    ],
    ids=str,
)
def test_a_value_of_one_row_is_computed(expression: pl.Expr) -> None:
    is_of_one_row, values = computed_by_row(FRAME, expression)

    assert is_of_one_row
    assert len(values) == FRAME.height


@pytest.mark.parametrize("height", [1, 4])
@pytest.mark.parametrize(
    "expression",
    [
        pl.col("n").mean(),
        pl.col("n") - pl.col("n").min(),
        pl.col("n").sum().over("Rank"),
        pl.col("n").shift(1),
        pl.col("n").cum_sum(),
        pl.col("n").rank(),
        pl.col("n").diff(),
        pl.col("n").reverse(),
        pl.col("n").fill_null(strategy="forward"),
        pl.col("n").is_duplicated(),
        pl.int_range(pl.len()),
        pl.len(),
    ],
    ids=str,
)
def test_a_value_of_several_rows_is_recognised(expression: pl.Expr, height: int) -> None:
    assert not computed_by_row(FRAME.head(height), expression)[0]


def test_a_function_that_looks_at_several_rows_is_recognised_by_its_values() -> None:
    expression = pl.col("n").map_batches(lambda values: values - values.max(), return_dtype=pl.Int64)

    assert not computed_by_row(FRAME, expression)[0]
