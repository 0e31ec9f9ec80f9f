"""A stream survives a Python process of Spark that does not start within Spark's limit of 10 s."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.support.spark_processes import clean_environment

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DRIVER = Path(__file__).parents[2] / "support" / "spark_late_stream.py"
LATE = """#!/bin/sh
case "$*" in *python_streaming_source_runner*)
    if [ ! -e {note} ]; then : > {note}; exit 0; fi
esac
exec {python} "$@"
"""
"""A Python whose first process of a streaming source never connects, so that Spark waits as long as it does."""


@pytest.mark.deep
@pytest.mark.timeout(1000)  # a busy machine may be late several times in a row, by ten seconds and more each
def test_a_stream_continues_after_its_source_did_not_start_in_time(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path
) -> None:
    table, copy = make_table(), make_table("copy")
    table.insert([{"id": 1, "v": "a", "n": 1}, {"id": 2, "v": "b", "n": 2}])
    late, note = tmp_path / "python", tmp_path / "was late"
    late.write_text(LATE.format(note=f"'{note}'", python=sys.executable))
    late.chmod(0o700)

    finished = subprocess.run(
        [sys.executable, str(DRIVER), table.address.warehouse, json.dumps(spark_conf)],
        env={**clean_environment(), "PYSPARK_PYTHON": os.fspath(late)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert finished.returncode == 0, finished.stderr[-3000:]
    assert note.exists()
    assert finished.stdout.splitlines() == ["[true, true, false]", "[false, null]"]
    assert "table db.copy: a Python process of Spark did not start in time" in finished.stderr
    assert copy.to_arrow() == table.to_arrow()
