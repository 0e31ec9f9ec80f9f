"""Registration of the data sources in a session of Spark."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSourceRegistration

from storage_lib.spark import register
from storage_lib.spark.data_source import table_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the sources that are registered from now on."""
    names: list[str] = []

    def note(_: DataSourceRegistration, source: Any) -> None:
        names.append(source.name())

    monkeypatch.setattr(DataSourceRegistration, "register", note)
    # Names that are free and not registered would be missing from all later sessions.
    monkeypatch.setattr(table_source, "free_names", lambda *_: None)
    return names


def test_sources_that_spark_finds_by_itself_are_not_registered(spark: SparkSession, registered: list[str]) -> None:
    register(spark.newSession())

    assert registered == []


def test_a_source_whose_package_is_not_on_the_path_is_registered(
    spark: SparkSession, registered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        table_source, "find_spec", lambda name: None if name == "pyspark_debezium_json" else find_spec(name)
    )
    register(spark.newSession())

    assert registered == ["debezium_json"]


def test_sources_are_registered_again_after_a_file_is_sent_to_the_executors(
    spark: SparkSession, registered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    register(session)
    # A source that Spark has found by itself, or that was registered before, does not know the file.
    monkeypatch.setattr(spark.sparkContext, "_python_includes", ["library.zip"])

    register(session)
    register(session)

    assert sorted(registered) == ["debezium_json", "dynamic_table"]


@pytest.mark.parametrize("name", ["dynamic_table", "debezium_json"])
def test_a_session_without_registration_finds_the_source(spark: SparkSession, name: str) -> None:
    # Without a source of this name, Spark's error would be another one.
    with pytest.raises(AnalysisException, match=r"storage_lib\.errors\.InvalidInputError"):
        spark.newSession().read.format(name).load()
