"""`make corners`: the tests of each environment, and their summary."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import corners
import stack_setup

PROGRAM = """#!/bin/sh
echo "make $*" >>{told}
case "$*" in
*lowest*) echo "== 1 failed, 2 passed, 1 error in 3.10s =="; exit 2;;
*dbt*) echo "setup: interrupted; run it again"; exit 2;;
*) echo "5 passed, 4 skipped in 65.04s (0:01:05)";;
esac
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file with the commands that were run; they run no test."""
    program, told = tmp_path / "bin" / "make", tmp_path / "told"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(told=told))
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return told


def table_of(printed: str) -> list[list[str]]:
    """Return the lines of the summary, without the seconds."""
    return [line.split()[:-1] for line in printed.partition("\n\n")[2].splitlines()]


def test_a_corner_that_fails_does_not_keep_the_next_ones_from_running(
    told: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert corners.main(["--only", "core lowest spark_4_0 dbt", "--slice", "3"]) == 1

    assert [line.removeprefix("make --no-print-directory ") for line in told.read_text().splitlines()] == [
        "core SLICE=3",
        "lowest SLICE=3",
        "spark VERSION=4.0 SLICE=3",
        "dbt",
    ]
    assert table_of(capfd.readouterr().out) == [
        ["corner", "result", "passed", "failed", "skipped"],
        ["core", "passed", "5", "0", "4"],
        ["lowest", "failed", "2", "2", "0"],
        ["spark_4_0", "passed", "5", "0", "4"],
        ["dbt", "failed", "-", "-", "-"],
    ]


def test_all_corners_of_a_kind_are_chosen_by_its_name(told: Path) -> None:
    assert corners.main(["--only", "airflow"]) == 0

    assert [line.split()[-1] for line in told.read_text().splitlines()] == [
        f"VERSION={each}" for each in stack_setup.AIRFLOWS
    ]


def test_without_a_choice_every_environment_of_the_setup_is_a_corner() -> None:
    assert [each.name for each in corners.chosen("")] == [
        "core",
        "lowest",
        *(f"spark_{each.replace('.', '_')}" for each in stack_setup.SPARKS),
        *(f"airflow_{each.replace('.', '_')}" for each in stack_setup.AIRFLOWS),
        "dbt",
    ]


@pytest.mark.parametrize("word", ["spark_3_5", "spark_4_", "air"])
def test_a_corner_that_does_not_exist_is_refused_with_those_that_do(word: str, told: Path) -> None:
    with pytest.raises(SystemExit, match=rf"^corners: no corner is called '{word}'; there are core, lowest, spark_4_0"):
        corners.main(["--only", f"core {word}"])
    assert not told.exists()


@pytest.mark.parametrize("line", ["no tests ran in 0.01s", "wait 3 s in 5s", "FAILED tests/test_x.py::test_y", ""])
def test_other_lines_have_no_counts(line: str) -> None:
    assert corners.counts_of(line) == {}
