"""What the setup lacks, and how to get it: in the header of the report, and instead of the tests that need it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from local_connect import JARS as CONNECT_JARS
from local_hdfs import JARS as HDFS_JARS
from local_iceberg_rest import JARS as ICEBERG_REST_JARS
from local_kafka import JARS
from local_mariadb import find_mariadb
from local_metastore import find_jars as find_metastore_jars
from local_postgres import find_programs as find_postgres
from local_registry import APP as REGISTRY_APP
from local_s3 import PROGRAM as S3_PROGRAM
from tests.support.extras import EXTRAS, advice, is_installed

LOCAL = Path(__file__).parents[3] / ".local"
PARTS: tuple[tuple[str, tuple[tuple[str, Path | None], ...]], ...] = (
    (
        "make setup",
        (
            ("Kafka", JARS),
            ("pypaimon", LOCAL / "paimon" / "bin" / "python"),
            ("Hive's metastore", find_metastore_jars()),
        ),
    ),
    (
        "make servers",
        (
            ("S3", S3_PROGRAM),
            ("HDFS", HDFS_JARS),
            ("registry", REGISTRY_APP),
            ("an Iceberg REST catalog", ICEBERG_REST_JARS),
            ("Kafka Connect with Debezium", CONNECT_JARS),
            ("Spark's Kafka connector", LOCAL / "spark_kafka" / "lib"),
            ("Spark's client of S3", LOCAL / "spark_s3" / "lib"),
            ("Paimon's Java core", LOCAL / "paimon_core"),
            ("Flink 1.20", LOCAL / "flink_1_20"),
            ("Flink 2.0", LOCAL / "flink_2_0"),
            ("PostgreSQL", find_postgres()),
            ("MariaDB", find_mariadb()),
        ),
    ),
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_report_header() -> list[str]:
    """List missing parts of the setup, and how to get them, before the first test."""
    said = []
    for command, places in PARTS:
        missing = ", ".join(what for what, place in places if place is None or not place.exists())
        if missing:
            said.append(f"NOT SET UP: {missing}; the tests that need it are skipped. Run `{command}`.")
    if not any(map(shutil.which, BROWSERS)):
        said.append("NOT SET UP: a browser; the tests that need it are skipped. Run `apt-get install chromium`.")
    packages = sorted({extra for module, extra in EXTRAS.items() if not is_installed(module)})
    if packages:
        extras = ", ".join(packages)
        said.append(
            f"NOT INSTALLED: the extras {extras}; the tests that need them are skipped. "
            "The environment of `make setup` has all, and `make test` uses it."
        )
    return said


class TestFile(pytest.Module):
    """A file of tests; skipped if its head imports a module of an extra that is not installed."""

    __test__ = False

    def _getobj(self) -> object:
        try:
            return super()._getobj()  # type: ignore[no-untyped-call]  # pytest leaves it untyped
        except pytest.skip.Exception as skipped:
            name = str(skipped.msg).partition("'")[2].partition("'")[0]  # of importorskip
            if name not in EXTRAS or is_installed(name):
                raise
            raise pytest.skip.Exception(advice(name), allow_module_level=True) from skipped
        except self.CollectError as error:
            missing = error.__cause__
            name = (missing.name or "").partition(".")[0] if isinstance(missing, ModuleNotFoundError) else ""
            if name not in EXTRAS or is_installed(name):
                raise
            raise pytest.skip.Exception(advice(name), allow_module_level=True) from error


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Collect a file of tests so that it is skipped where an extra is missing."""
    return TestFile.from_parent(parent, path=module_path)
