"""`make bench ONLY=tpch` with a few hundred rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.tpch_work.tpch_report import picture_of, table_of
from benchmarks.tpch_work.tpch_tables import KEYS, queries
from benchmarks.tpch_work.upserted_table import commits_of
from tests.benchmarks.tiny_tpch import write_tiny_tpch

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.deep  # a program for developers, minutes of Spark
@pytest.mark.spark
@pytest.mark.integration
def test_all_queries_answer_the_same_over_merged_rows_and_over_files(tmp_path: Path) -> None:
    write_tiny_tpch(tmp_path / "data")
    sizes = ("--scale", "0.001", "--repeats", "1", "--warm-ups", "0", "--memory", "1g")
    places = [f"--{name}={tmp_path / name}" for name in ("data", "directory", "results")]
    command = [sys.executable, "-m", "benchmarks.tpch", *sizes, *places]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads((tmp_path / "results" / "tpch.json").read_text())
    assert [each["query"] for each in records] == [*queries(1), "all"]
    # An answer without rows would be the same whatever the tables hold.
    assert sum(each["rows"] > 0 for each in records[:-1]) >= 20
    assert (tmp_path / "results" / "tpch.svg").read_text() == picture_of(records)
    assert len(table_of(records)) == len(records) + 1


def test_there_are_22_queries_with_the_parameters_of_the_scale_factor() -> None:
    assert len(queries(1)) == 22
    assert "* 0.0001000000" in queries(1)["Q11"]
    assert "* 0.0100000000" in queries(0.01)["Q11"]
    assert not any("{" in text for text in queries(1).values())


@pytest.mark.parametrize("name", KEYS)
def test_the_commits_of_a_table_lead_to_its_final_rows_and_each_upsert_counts(tmp_path: Path, name: str) -> None:
    write_tiny_tpch(tmp_path)
    final, key = pq.read_table(tmp_path / f"{name}.parquet"), KEYS[name]
    commits = list(commits_of(final, key))
    assert len(commits) == 4
    assert _newest(commits, key) == _newest([final], key)
    for left_out in range(1, 4):
        assert _newest(commits[:left_out] + commits[left_out + 1 :], key) != _newest([final], key)


def _newest(commits: list[pa.Table], key: tuple[str, ...]) -> dict[tuple[object, ...], dict[str, object]]:
    return {tuple(row[each] for each in key): row for commit in commits for row in commit.to_pylist()}
