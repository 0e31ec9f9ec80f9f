"""`make bench ONLY=spark` at a tiny size, with the systems that need no environment of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spark_engine.engine_round import PLAIN, THROUGH_VIEW
from benchmarks.spark_engine.queries import QUERIES, same_rows
from benchmarks.spark_engine.report import picture_of, table_of

pytestmark = [pytest.mark.spark, pytest.mark.integration]

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Records of one run, whose program compares every answer with the expected one."""
    scratch = tmp_path_factory.mktemp("spark-benchmark")
    sizes = ("--rows", "1500", "--upserts", "2", "--rounds", "1", "--repeats", "1", "--memory", "1g")
    places = ("--directory", str(scratch / "work"), "--results", str(scratch / "results"))
    command = [sys.executable, "-m", "benchmarks.spark", "--systems", f"ours,{PLAIN}", *sizes, *places]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads((scratch / "results" / "spark.json").read_text())
    assert (scratch / "results" / "spark.svg").read_text() == picture_of(found)
    return found


@pytest.mark.deep  # this run of the program takes minutes of Spark
def test_every_work_is_measured_of_every_system_that_offers_it(records: list[dict[str, Any]]) -> None:
    measured = {(each["work"], each["system"]): each["runs"] for each in records}
    queries = [f"{name}, {state}" for state in ("uncompacted", "compacted") for name in (*QUERIES, "look-up")]
    offered = {(work, system) for work in queries for system in ("ours", THROUGH_VIEW, PLAIN)}
    offered |= {(work, system) for work in ("session start", "load, cold", "load, warm") for system in ("ours", PLAIN)}
    offered |= {(work, "ours") for work in ("upsert", "compaction")}
    assert set(measured) == offered
    assert measured["upsert", "ours"] == 2


@pytest.mark.deep
def test_memory_is_measured_in_every_work_and_python_traffic_in_our_writes(records: list[dict[str, Any]]) -> None:
    assert all(each["peak_memory_bytes"] > 1 << 27 for each in records)
    traffic = {(each["work"], each["system"]): each["python_bytes"] for each in records}
    # The rows in Arrow: an integer, 12 letters, a decimal, a double, a time, a day and their offsets.
    assert 1_500 * 60 < traffic["load, warm", "ours"] < 1_500 * 200
    assert all(count == 0 for (_, system), count in traffic.items() if system == PLAIN)


@pytest.mark.deep
def test_the_table_has_a_line_for_each_work_with_bytes_and_memory(records: list[dict[str, Any]]) -> None:
    head, *body = table_of(records)
    assert [line[0] for line in body] == list(dict.fromkeys(each["work"] for each in records))
    assert {len(line) for line in body} == {len(head)}
    load = next(line for line in body if line[0] == "load, warm")
    assert load[-2].endswith(" MB")
    assert load[-1].endswith(" GiB")


def test_an_answer_is_right_up_to_the_rounding_of_doubles() -> None:
    assert same_rows([[1, "a", 0.1 + 0.2]], [[1, "a", 0.3]])
    assert not same_rows([[1, "a", 0.3]], [[1, "b", 0.3]])
    assert not same_rows([[1, "a", 0.3]], [[1, "a", 0.30001]])
    assert not same_rows([[1]], [[1], [1]])
