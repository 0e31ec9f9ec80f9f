"""What the versions of Spark have: as the installed one shows, and refused by name where it is lacking."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

import pyspark
from pyspark.sql import types
from pyspark.sql.streaming.readwriter import DataStreamWriter

from storage_lib import InvalidInputError
from storage_lib.spark import write_stream
from storage_lib.spark.data_source.stream_reader import refuse_limit
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

SIGNS: dict[SparkFeature, Callable[[], bool]] = {
    SparkFeature.ADMISSION_CONTROL: lambda: find_spec("pyspark.sql.streaming.datasource") is not None,
    SparkFeature.REAL_TIME: lambda: "realTime" in signature(DataStreamWriter.trigger).parameters,
    SparkFeature.TIME: lambda: hasattr(types, "TimeType"),
    SparkFeature.PIPELINES: lambda: find_spec("pyspark.pipelines") is not None,
}


def test_each_feature_has_a_sign_or_a_test_of_its_own() -> None:
    # test_doubled_quotes.py; tests/spark/test_real_time.py
    assert {*SIGNS, SparkFeature.DOUBLED_QUOTES, SparkFeature.REAL_TIME_SHUFFLES} == {*SparkFeature}


@pytest.mark.parametrize("feature", SIGNS)
def test_a_feature_is_in_the_installed_spark_as_its_version_says(feature: SparkFeature) -> None:
    assert SIGNS[feature]() == feature.is_here


@pytest.mark.parametrize("feature", SparkFeature)
def test_a_feature_is_refused_before_its_version_and_not_from_then_on(
    feature: SparkFeature, monkeypatch: pytest.MonkeyPatch
) -> None:
    major, minor = map(int, feature.since.split("."))
    monkeypatch.setattr(pyspark, "__version__", f"{major}.{minor - 1}.9")

    with pytest.raises(
        InvalidInputError, match=rf"^here: {feature.purpose} needs Spark {feature.since}, and pyspark 4\.\d\.9 is"
    ):
        feature.require("here", "Do without")

    monkeypatch.setattr(pyspark, "__version__", f"{feature.since}.0")
    feature.require("here", "Do without")


def test_a_limit_of_rows_is_refused_where_spark_does_not_pass_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    refuse_limit("table db.t", None)

    with pytest.raises(InvalidInputError, match=r"needs Spark 4\.2.* Leave rows_per_trigger_max out"):
        refuse_limit("table db.t", 10)


def test_a_real_time_stream_is_refused_by_the_version_that_has_it(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    df, table = spark.readStream.format("rate").load(), make_table()
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")

    with pytest.raises(InvalidInputError, match=r"^table db\.t: a real-time stream needs Spark 4\.2, and pyspark 4\.1"):
        write_stream(df, table, checkpoint_location=str(tmp_path / "checkpoint"), real_time=True)

    assert not (tmp_path / "checkpoint").exists()
