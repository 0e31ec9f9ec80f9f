"""Assignment of tests to pytest's processes, and the order in which the processes take them.

Tests that start servers mostly wait, so there are more processes than cores. They finish at about the same time if
slow scopes start early and each process takes the next scope when it has finished its last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["SESSIONS", "ScopeSeconds", "rank_of", "scope_of"]

# Files that start their own Spark drivers and use no session of this process: each is a separate scope.
OWN_DRIVERS = (
    "tests/spark/test_driver_is_killed.py",
    "tests/spark/test_real_time.py",
    "tests/spark/test_pipelines.py",
    "tests/spark/test_spark_connect.py",
    "tests/benchmarks/test_spark_benchmark.py",
    "tests/benchmarks/test_tpch_benchmark.py",
    "tests/benchmarks/test_cluster_benchmark.py",
    "tests/spark/test_chain_of_tables.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_driver_memory.py",
    "tests/spark/test_streaming_sink.py",
    "tests/spark/runtime/test_private_sessions.py",
    "tests/sql/test_tour.py",
)
# A server that takes long to start, and the folders and files whose tests share it; the first name fits. Spark's tests
# have four sessions of about equal length: each costs a dozen seconds, and no process is left alone with the longest.
SESSIONS = {
    "streams of SQL on Spark": (
        "tests/sql/test_insert_streams.py",
        "tests/sql/test_sql_cases_over_kafka.py",
        "tests/sql/test_streaming_answers.py",
        "tests/sql/test_waiting_for_streams.py",
    ),
    "SQL on Spark": ("tests/sql/", "tests/differential/test_sql_verbs.py"),
    "materialized tables on Spark": ("tests/spark/materialized/",),
    "Spark": ("tests/spark/", "tests/differential/test_streaming_sql_on_spark.py"),
    "Airflow": ("tests/dags/",),
    "Flink": ("tests/interop/",),
    "Debezium": (
        "tests/cdc/test_change_game.py",
        "tests/cdc/test_database_game.py",
        "tests/cdc/test_debezium_stack.py",
        "tests/cdc/test_mariadb_game.py",
    ),
    "Hive and HDFS": (
        "tests/catalog/",
        "tests/faults/test_lost_commit_answers.py",
        "tests/io/test_file_io.py",
        "tests/io/test_lost_answers.py",
        "tests/io/test_racing_creators.py",
    ),
}
# By duration, the longest first.
FIRST = (
    "streams of SQL on Spark",
    "materialized tables on Spark",
    "Spark",
    "SQL on Spark",
    "Airflow",
    "tests/soak/test_short_soak.py",
    "Flink",
    "Debezium",
    *OWN_DRIVERS,
    "tests/test_pages.py",
    "tests/cli/test_sql_shell.py",
    "tests/docker/test_compose_by_hand.py",
    "tests/plugins/operators/test_engines.py",
)
SLOW_FOLDERS = ("tests/faults/",)
"""Folders whose tests start processes although they have no mark."""


def scope_of(nodeid: str) -> str:
    """Return the name of the scope of a test: all tests of a scope run in one process, in order."""
    path = nodeid.partition("::")[0]
    if path in OWN_DRIVERS:
        return path
    return next((name for name, places in SESSIONS.items() if path.startswith(places)), path)


def rank_of(nodeid: str, *, starts_processes: bool) -> int:
    """Return the place of a test in the order of the run; tests of the same rank keep the order of collection."""
    scope = scope_of(nodeid)
    if scope in FIRST:
        return FIRST.index(scope)
    return len(FIRST) + (0 if scope.startswith(SLOW_FOLDERS) else 1 if starts_processes else 2)


class ScopeSeconds:
    """Duration of each scope, set-up included: the figures from which ``FIRST`` is ordered."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def add(self, nodeid: str, seconds: float) -> None:
        """Add the duration of one phase of a test."""
        self._seconds[scope_of(nodeid)] += seconds  # type: ignore[assignment]  # a Counter adds floats as well

    def lines(self, count: int) -> Iterable[str]:
        """Return the longest scopes, and the sum of all."""
        yield f"{self._seconds.total():8.1f}s in all scopes"
        for scope, seconds in self._seconds.most_common(count):
            yield f"{seconds:8.1f}s {scope}"
