"""Slow tests start early, and tests that share a server share a process."""

from __future__ import annotations

from pathlib import Path

from tests.support.work_order import FIRST, OWN_DRIVERS, SESSIONS, ScopeSeconds, rank_of, scope_of

REPOSITORY = Path(__file__).parents[1]


def test_every_place_that_the_order_names_is_there() -> None:
    named = [scope for scope in FIRST if scope not in SESSIONS]
    shared = [place for places in SESSIONS.values() for place in places]

    assert [place for place in [*named, *shared] if not (REPOSITORY / place).exists()] == []


def test_a_file_with_drivers_of_its_own_asks_for_no_session() -> None:
    assert [path for path in OWN_DRIVERS if "spark: SparkSession" in (REPOSITORY / path).read_text()] == []
    assert scope_of(f"{OWN_DRIVERS[0]}::test_a") == OWN_DRIVERS[0]


def test_tests_that_share_a_server_are_one_scope_and_others_are_one_by_file() -> None:
    assert scope_of("tests/sql/test_session.py::test_a[x::y]") == scope_of("tests/sql/test_sql_cases.py::test_b")
    assert scope_of("tests/spark/data_source/test_batch_reader.py::test_a") == scope_of(
        "tests/differential/test_streaming_sql_on_spark.py::test_b"
    )
    assert scope_of("tests/table/changelog/test_change_scan.py::test_a") == "tests/table/changelog/test_change_scan.py"


def test_spark_has_four_sessions() -> None:
    files = [
        "sql/test_insert_streams.py",
        "sql/test_session.py",
        "spark/materialized/test_refresh.py",
        "spark/data_source/test_batch_reader.py",
    ]

    assert len({scope_of(f"tests/{file}::test_a") for file in files}) == len(files)


def test_the_longest_start_first_then_what_starts_processes_then_the_rest() -> None:
    def rank(path: str, *, starts_processes: bool) -> int:
        return rank_of(f"{path}::test_a", starts_processes=starts_processes)

    ranks = [
        rank("tests/sql/test_session.py", starts_processes=True),
        rank("tests/dags/test_dag_files.py", starts_processes=False),
        rank("tests/soak/test_short_soak.py", starts_processes=True),
        rank("tests/faults/test_full_disk.py", starts_processes=False),
        rank("tests/catalog/hive/test_hive_catalog.py", starts_processes=True),
        rank("tests/schema/test_table_schema.py", starts_processes=False),
    ]

    assert ranks == sorted(set(ranks))


def test_the_seconds_of_a_scope_are_those_of_its_tests() -> None:
    seconds = ScopeSeconds()
    for nodeid in ("tests/sql/test_a.py::test_a", "tests/sql/test_b.py::test_b", "tests/table/test_c.py::test_c"):
        seconds.add(nodeid, 1.5)

    assert list(seconds.lines(1)) == ["     4.5s in all scopes", "     3.0s SQL on Spark"]
