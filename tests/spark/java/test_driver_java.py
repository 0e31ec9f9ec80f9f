"""Java code in the driver: it is compiled once, and planning a query takes few calls of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]
from py4j.java_gateway import GatewayConnection  # type: ignore[import-untyped]

from storage_lib import open_catalog
from storage_lib.spark.java import driver_java
from storage_lib.sql import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RELEASE = "m\nd\n"
"""The command by which py4j releases an object: it depends on Python's garbage collector."""


def test_a_class_is_compiled_once_for_each_jvm(spark: SparkSession) -> None:
    first = driver_java.driver_object(spark, "TemporaryViews")

    assert driver_java.driver_object(spark, "TemporaryViews") is first


def test_threads_that_ask_at_once_share_one_class(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "package dynamic_table; public class Shared { public int answer() { return 42; } }"
    (tmp_path / "Shared.java").write_text(text)
    monkeypatch.setattr(driver_java, "files", lambda package: tmp_path)
    ready = Barrier(6)

    def answers(_: int) -> list[int]:
        found = []
        for _ in range(2):
            ready.wait()
            found.append(driver_java.driver_object(spark, "Shared").answer())
        return found

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(answers, range(6))) == [[42, 42]] * 6


def test_a_class_that_does_not_fit_spark_is_an_error_that_names_both(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Broken.java").write_text("package dynamic_table; public class Broken { Gone gone; }")
    monkeypatch.setattr(driver_java, "files", lambda package: tmp_path)

    with pytest.raises(RuntimeError, match=rf"Broken\.java can't be compiled with Spark {spark.version}; .*Gone"):
        driver_java.driver_object(spark, "Broken")


def test_planning_a_select_takes_few_calls_of_the_jvm(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for connection in (ClientServerConnection, GatewayConnection):

        def counted(self: Any, command: str, send: Any = connection.send_command) -> Any:
            if not command.startswith(RELEASE):
                calls.append(command)
            return send(self, command)

        monkeypatch.setattr(connection, "send_command", counted)
    columns = ", ".join(f"c{number} DOUBLE" for number in range(30))
    query = "SELECT a.c1 + b.c2 AS c FROM wide AS a JOIN wide AS b ON a.id = b.id WHERE a.c3 > 0.5D AND b.c4 < 7.5D"
    with Session(spark, open_catalog(str(tmp_path / "warehouse"))) as sql:
        sql.execute(f"CREATE TABLE wide (id BIGINT, {columns}, PRIMARY KEY (id) NOT ENFORCED)")
        sql.execute(f"INSERT INTO wide VALUES (1, {', '.join(['1.0'] * 30)})")  # noqa: S608  our own text
        sql.execute(query)
        calls.clear()

        sql.execute(query)

        assert 0 < len(calls) <= 60, f"{len(calls)} calls for two tables of 31 columns"
