"""Sizes of Spark's SQL metrics as text."""

from __future__ import annotations

import pytest

from benchmarks.spark_engine.python_traffic import size_of


@pytest.mark.parametrize(
    ("shown", "size"),
    [
        ("0.0 B", 0),
        ("787.5 KiB", 806_400),
        ("1,569.5 KiB", 1_607_168),
        ("total (min, med, max (stageId: taskId))\n8.5 MiB (0.0 B, 3.0 MiB, 5.5 MiB (driver))", 8_912_896),
    ],
)
def test_the_total_of_a_size_metric_is_parsed(shown: str, size: int) -> None:
    assert size_of(shown) == size


def test_an_unknown_form_is_reported_rather_than_counted_as_zero() -> None:
    with pytest.raises(ValueError, match="unknown format"):
        size_of("many bytes")
