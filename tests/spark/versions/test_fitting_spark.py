"""A version of Spark that does not fit is refused by its number, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import pyspark

from storage_lib import InvalidInputError
from storage_lib.spark import read, write, write_stream
from storage_lib.spark.data_source.table_source import DynamicTableSource
from storage_lib.spark.versions import fitting_spark
from storage_lib.spark.versions.fitting_spark import (
    SPARK_VERSIONS,
    refuse_unfitting_pyspark,
    refuse_unfitting_session,
    warn_of_trial,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

RANGE = r"dynamic tables need \d\.\d to \d\.\d"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that sets the version of the package's files, and those of installed distributions."""

    def install(files: str, **distributions: str) -> None:
        def found(name: str) -> str:
            if name.replace("-", "_") in distributions:
                return distributions[name.replace("-", "_")]
            if name.startswith("pyspark"):
                raise PackageNotFoundError(name)
            return version(name)

        monkeypatch.setattr(pyspark, "__version__", files)
        monkeypatch.setattr(fitting_spark, "version", found)
        fitting_spark._installed.cache_clear()

    yield install
    fitting_spark._installed.cache_clear()


def test_the_installed_version_fits() -> None:
    refuse_unfitting_pyspark()
    refuse_unfitting_session(pyspark.__version__)


@pytest.mark.parametrize("release", [f"{major}.{minor}.7" for major, minor in SPARK_VERSIONS])
def test_each_release_of_a_version_fits(release: str, installed: Callable[..., None]) -> None:
    installed(release, pyspark=release)

    refuse_unfitting_pyspark()


@pytest.mark.parametrize("release", ["4.2.7", "4.3.7"])
def test_a_version_on_trial_is_said_once(
    release: str,
    installed: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitting_spark, "ON_TRIAL", ((4, 2),))
    lines = int(release == "4.2.7")
    installed(release)
    warn_of_trial.cache_clear()

    warn_of_trial()
    warn_of_trial()

    warn_of_trial.cache_clear()
    assert caplog.text.count(f"pyspark {release} is installed: dynamic tables run on it on trial") == lines


@pytest.mark.parametrize("release", ["3.5.1", "4.4.0", "5.0.0.dev1", "unknown"])
def test_another_version_is_refused_by_its_number(release: str, installed: Callable[..., None]) -> None:
    installed(release, pyspark=release)

    with pytest.raises(InvalidInputError, match=rf"pyspark {release} is installed, in .+pyspark; {RANGE}"):
        refuse_unfitting_pyspark()


def test_files_of_another_distribution_are_named(installed: Callable[..., None]) -> None:
    installed("4.3.0", pyspark="4.2.1", pyspark_client="4.3.0")

    with pytest.raises(
        InvalidInputError,
        match=r"files of version 4\.3\.0, but pyspark 4\.2\.1 and pyspark-client 4\.3\.0 are installed.*pip uninstall",
    ):
        refuse_unfitting_pyspark()


def test_pyspark_on_a_path_without_metadata_fits(installed: Callable[..., None]) -> None:
    """As on a cluster, whose Spark has pyspark in its own folder."""
    installed("4.3.0")

    refuse_unfitting_pyspark()


def test_a_session_of_another_spark_is_refused(monkeypatch: pytest.MonkeyPatch, installed: Callable[..., None]) -> None:
    installed("4.3.0", pyspark="4.3.0")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")

    with pytest.raises(
        InvalidInputError,
        match=r"session runs Spark 3\.5\.1, but pyspark 4\.3\.0 is installed; SPARK_HOME is /opt/spark",
    ):
        refuse_unfitting_session("3.5.1")


def test_nothing_is_written_with_another_version(
    spark: SparkSession, make_table: Callable[..., DynamicTable], installed: Callable[..., None], tmp_path: Path
) -> None:
    table = make_table()
    table.append(pa.table({"id": [1], "v": ["a"], "n": pa.array([1], pa.int32())}))
    rows, stream = read(spark, table), spark.readStream.format("rate").load()
    newest = table.inspect.latest_snapshot_id()
    installed("4.9.0", pyspark="4.9.0")

    for refused in (
        lambda: write(rows, table),
        lambda: read(spark, table),
        lambda: write_stream(
            stream.selectExpr("value id", "'' v", "0 n"), table, checkpoint_location=str(tmp_path / "checkpoint")
        ),
        lambda: DynamicTableSource({"path": table.address.name}),
    ):
        with pytest.raises(InvalidInputError, match=RANGE):
            refused()

    assert table.refresh().inspect.latest_snapshot_id() == newest
    assert not (tmp_path / "checkpoint").exists()
