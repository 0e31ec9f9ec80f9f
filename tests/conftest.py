"""Fixtures shared by all folders: the session's servers, marks derived from fixtures, a report of missing setup.

Builders are in ``tests/support``, other fixtures near their use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from local_hdfs import JARS as HDFS_JARS
from local_hdfs import LocalHdfs
from local_kafka import JARS, LocalKafka
from local_metastore import LocalMetastore
from local_metastore import find_jars as find_metastore_jars
from local_postgres import LocalPostgres
from local_postgres import find_programs as find_postgres
from local_registry import APP as REGISTRY_APP
from local_registry import LocalRegistry
from local_s3 import PROGRAM as S3_PROGRAM
from local_s3 import LocalS3
from quick_spark import quick_spark
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from tests.support.chromium import PROGRAM as CHROMIUM
from tests.support.deep_tests import SLICES, is_selected
from tests.support.flink import FLINKS, Flink
from tests.support.memory_disk import memory_disk
from tests.support.paimon_core import HOME as PAIMON_CORE
from tests.support.paimon_core import PaimonCore
from tests.support.spark_jars import SPARK_KAFKA, SPARK_S3
from tests.support.sql_cases import REWRITE
from tests.support.work_order import ScopeSeconds, rank_of, scope_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A test that uses the fixture on the left gets the marks on the right.
MARKS_OF_FIXTURES = {
    "flink_1_20": ("flink", "integration"),
    "flink_2_0": ("flink", "integration"),
    "hdfs": ("hdfs", "integration"),
    "kafka": ("kafka", "integration"),
    "metastore": ("metastore", "integration"),
    "paimon_core": ("paimon_core", "integration"),
    "postgres": ("postgres", "integration"),
    "registry": ("registry", "integration"),
    "s3": ("s3", "integration"),
    "spark": ("spark", "integration"),
}
SPARK_CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

PAIMON_PYTHON = Path(__file__).parents[1] / ".local" / "paimon" / "bin" / "python"

# Every Spark that a test starts, in this process or in another, runs for seconds only.
os.environ.update(quick_spark())

# Default root of `tmp_path`; `--basetemp` overrides it.
if in_memory := memory_disk():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(in_memory))

# Randomness is seeded: the same examples at every run, everywhere. Deadlines are off, since durations depend on the
# machine's load.
settings.register_profile("seeded", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("seeded")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose tests, and the one that rewrites expectations stored in text files."""
    parser.addoption("--deep", action="store_true", help="also run the tests that only `make deep` runs")
    parser.addoption(
        "--slice",
        type=int,
        choices=range(1, SLICES + 1),
        help=f"run one of {SLICES} slices of the tests that only `make deep` runs, and no others",
    )
    parser.addoption(REWRITE, action="store_true", help="write what the cases in tests/sql/cases give now")


def pytest_configure(config: pytest.Config) -> None:
    """Name the main module of an xdist worker; pyspark takes an unnamed one for a doctest, and exits."""
    if hasattr(config, "workerinput"):
        sys.modules["__main__"].__spec__ = find_spec("xdist.remote")


def pytest_report_header() -> list[str]:
    """List missing parts of the setup, and how to get them, before the first test."""
    parts = (
        ("make setup", (("Kafka", JARS), ("pypaimon", PAIMON_PYTHON), ("Hive's metastore", find_metastore_jars()))),
        (
            "make servers",
            (
                ("S3", S3_PROGRAM),
                ("HDFS", HDFS_JARS),
                ("registry", REGISTRY_APP),
                ("Spark's Kafka connector", SPARK_KAFKA),
                ("Spark's client of S3", SPARK_S3),
                ("Paimon's Java core", PAIMON_CORE),
                *((f"Flink {release}", home) for release, home in FLINKS.items()),
                ("PostgreSQL", find_postgres()),
            ),
        ),
        ("apt-get install chromium", (("a browser", Path(CHROMIUM) if CHROMIUM else None),)),
    )
    said = []
    for command, places in parts:
        missing = ", ".join(what for what, place in places if place is None or not place.exists())
        if missing:
            said.append(f"NOT SET UP: {missing}; the tests that need it are skipped. Run `{command}`.")
    return said


class ByScope(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Keep a file's tests in one of pytest's processes, and all tests that share a server as well."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByScope:
    """Replace xdist's own groups: 3.8 can't distinguish those of pytest 9.2."""
    return ByScope(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a separate process, so that `make test FAST=1` can leave them out.

    Drills are left out unless their mark is requested, deep tests unless an option is. Slow tests run first, so that
    pytest's processes end at about the same time.
    """
    taken = {item for item in items if _is_taken(item, config)}
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = [item for item in items if item in taken]
    for item in items:
        for fixture in MARKS_OF_FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            for mark in MARKS_OF_FIXTURES[fixture]:
                item.add_marker(mark)
    items.sort(key=_rank)


def _is_taken(item: pytest.Item, config: pytest.Config) -> bool:
    if item.get_closest_marker("drill"):
        return "drill" in config.getoption("markexpr")
    return is_selected(
        item.nodeid,
        is_deep=item.get_closest_marker("deep") is not None,
        deep=config.getoption("deep") or "deep" in config.getoption("markexpr"),
        chosen=config.getoption("slice"),
    )


def _rank(item: pytest.Item) -> int:
    marks = (item.get_closest_marker("integration"), item.get_closest_marker("airflow"))
    return rank_of(item.nodeid, starts_processes=any(marks))


_scope_seconds = ScopeSeconds()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the test's duration to that of its scope."""
    _scope_seconds.add(report.nodeid, report.duration)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report the longest scopes next to the slowest tests: their order is kept in ``tests/support/work_order.py``."""
    if config.option.durations:
        terminalreporter.section(f"slowest {config.option.durations} scopes")
        for line in _scope_seconds.lines(config.option.durations):
            terminalreporter.line(line)


def pytest_sessionfinish() -> None:
    """Close connections to the stopped brokers: the client would otherwise reconnect, and log, until the exit."""
    close_connections()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """One real broker for the whole session, started by the first test that uses it; it always ends with pytest.

    Topics are shared: name yours after the test. To kill a broker, a test must start its own.
    """
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    with LocalKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalS3]:
    """One real S3 server for the whole session, with a bucket ``lake``; use a separate prefix for your files."""
    if not S3_PROGRAM.exists():
        pytest.skip("there is no S3 server here: run `make servers`")
    with LocalS3(tmp_path_factory.mktemp("s3")) as server:
        server.create_bucket("lake")
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHdfs]:
    """One real HDFS for the whole session; use a separate directory for your files."""
    if not HDFS_JARS.exists():
        pytest.skip("there is no HDFS here: run `make servers`")
    with LocalHdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """One real schema registry for the whole session; name your topics after your test."""
    if not REGISTRY_APP.exists():
        pytest.skip("there is no schema registry here: run `make servers`")
    with LocalRegistry(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """One real PostgreSQL for the whole session; use a separate ``catalog-key`` for your catalog."""
    if find_postgres() is None:
        pytest.skip("there is no PostgreSQL here: run `make servers`, which says how to get it")
    with LocalPostgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMetastore]:
    """One real Hive metastore for the whole session; name your databases after your test."""
    if find_metastore_jars() is None:
        pytest.skip("there is no Hive metastore here: run `make setup`")
    with LocalMetastore(tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture(scope="session")
def paimon_core() -> Iterator[PaimonCore]:
    """Paimon's Java core, one JVM for the whole session, started by the first test that uses it."""
    with PaimonCore() as core:
        yield core


@pytest.fixture(scope="session")
def flink_1_20() -> Iterator[Flink]:
    """Flink 1.20 with Paimon's connector, one JVM for the whole session."""
    with Flink("1.20") as flink:
        yield flink


@pytest.fixture(scope="session")
def flink_2_0() -> Iterator[Flink]:
    """Flink 2.0 with Paimon's connector, one JVM for the whole session."""
    with Flink("2.0") as flink:
        yield flink


@pytest.fixture(scope="session")
def spark_conf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings that keep a Spark session small and quiet."""
    return {**SPARK_CONF, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse"))}


@pytest.fixture(scope="session")
def spark(spark_conf: dict[str, str]) -> Iterator[SparkSession]:
    """Spark session shared by all tests, since starting one takes ten seconds."""
    pytest.importorskip("pyspark")
    from storage_lib.spark import session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session("tests", master="local[2]", conf=spark_conf)
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture(autouse=True)
def _spark_keeps_running() -> Iterator[None]:
    """Fail a test that stops the session of the tests that come after it in the same process."""
    pyspark = sys.modules.get("pyspark")
    before = pyspark.SparkContext._active_spark_context if pyspark else None
    yield
    if before is not None and before._jsc is None:
        pytest.fail("the test stopped a Spark session that it had not started")
