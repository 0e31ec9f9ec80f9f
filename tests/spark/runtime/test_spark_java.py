"""Without a Java that Spark supports, the error explains the problem instead of a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storage_lib.spark.runtime.spark_java import java_problem, java_version
from tests.support.spark_processes import clean_environment

pytest.importorskip("pyspark")
COMMAND = Path(sys.executable).with_name("dynamic-table")


def home_of_java(directory: Path, answer: str) -> Path:
    """Create a JAVA_HOME whose ``java`` writes ``answer`` to standard error, as ``java -version`` does."""
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{answer}\n")
    java.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("""echo 'openjdk version "17.0.15" 2025-04-15' >&2""", None),
        ("""echo 'openjdk version "21" 2023-09-19' >&2""", None),
        ("""echo 'java version "1.8.0_402"' >&2""", 'bin/java is java version "1.8.0_402"'),
        ("exit 1", "bin/java does not run"),
    ],
)
def test_the_java_of_java_home_is_judged_by_its_version(
    answer: str, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home_of_java(tmp_path / "java", answer)))

    found = java_problem()

    assert found is None if problem is None else found is not None and found.endswith(problem)


def test_a_java_that_is_not_there_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_problem() == f"JAVA_HOME is {tmp_path}, which has no bin/java"
    assert java_version() is None

    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_problem() == "java is not on PATH, and JAVA_HOME is not set"


@pytest.mark.integration
@pytest.mark.parametrize(
    "words",
    [
        [COMMAND, "-w", "warehouse", "sql", "SELECT 1"],
        [sys.executable, "-c", "from storage_lib.spark import session; session(master='local[1]')"],
    ],
    ids=["command line", "Python"],
)
def test_spark_without_java_says_what_to_install(words: list[str | Path], tmp_path: Path) -> None:
    ran = subprocess.run(
        words,
        cwd=tmp_path,
        env={**clean_environment(), "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert f"InvalidInputError: Spark did not start: JAVA_HOME is {tmp_path}, which has no bin/java" in last
    assert "install" in last
    assert ("Traceback" in ran.stderr) == (words[0] == sys.executable)
