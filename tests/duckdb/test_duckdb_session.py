"""One DuckDB serves all threads of a process, within its limits, and none of a forked process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from storage_lib.duckdb.duckdb_session import duckdb_session
from storage_lib.materialized.engine import EngineRefusalError

SIZE = 1 << 30


def total(number: int) -> int:
    with duckdb_session(SIZE) as session:
        name = session.register(pa.table({"v": list(range(number))}))
        session.keep("kept", f"SELECT v FROM {name}")  # noqa: S608
        found: int = session.rows("SELECT CAST(sum(v) AS BIGINT) AS s FROM kept")["s"][0].as_py()
        return found


def test_sessions_of_many_threads_do_not_see_each_other() -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(total, range(1, 60)))

    assert found == [number * (number - 1) // 2 for number in range(1, 60)]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT CAST(2147483647 AS INTEGER) + CAST(1 AS INTEGER)", "Overflow"),
        ("SELECT 1 % 0", "Division by zero"),
        ("SELECT * FROM missing", "missing"),
        ("SELECT * FROM read_parquet('/nowhere/a.parquet')", "a.parquet"),
        ("SELECT count(DISTINCT a.range * b.range) FROM range(40000) AS a, range(40000) AS b", "[Mm]emory"),
    ],
)
def test_every_error_of_duckdb_is_a_refusal(statement: str, reason: str) -> None:
    with duckdb_session(SIZE) as session:
        session.execute("SET memory_limit = '100MB'")
        with pytest.raises(EngineRefusalError, match=reason):
            session.rows(statement)
        session.execute("SET memory_limit = '2GB'")


def test_variables_of_python_are_not_tables() -> None:
    rows = pa.table({"v": [1]})
    with duckdb_session(SIZE) as session, pytest.raises(EngineRefusalError, match="rows"):
        session.rows("SELECT * FROM rows")
    assert rows.num_rows == 1


def test_a_forked_process_opens_its_own_duckdb() -> None:
    assert total(5) == 10
    child = os.fork()
    if child == 0:
        os._exit(total(4))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 6
