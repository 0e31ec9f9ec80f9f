"""Tasks that Spark runs again after they have written: the same rows reach the files and the log, each once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.support.spark_processes import warm_environment
from tests.support.spark_topics import committed_changes

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DRIVER = Path(__file__).parents[2] / "support" / "spark_repeated_tasks.py"


def test_rows_of_a_repeated_task_are_once_in_the_files_and_once_in_the_log(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str]
) -> None:
    logged = make_table("logged", log=True, bucket=2)
    plain = make_table("plain", bucket=2)
    appended = make_table("appended", primary_key=(), write_mode="append-only", bucket=-1)
    tables = [table.name for table in (logged, plain, appended)]
    options = json.dumps({"spark": spark_conf, "catalog": dict(logged.address.options)})

    finished = subprocess.run(
        [sys.executable, str(DRIVER), logged.address.warehouse, options, *tables],
        env=warm_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert finished.returncode == 0, finished.stderr[-3000:]
    for table, count in ((logged, 150), (plain, 150), (appended, 200)):
        assert table.to_arrow().num_rows == count
        assert table.inspect.lease_holder() is None
    ops = [op for op, _, _ in committed_changes(logged)]
    last = {key: value for _, key, value in committed_changes(logged)}
    assert len(ops) == 200
    assert last == {row["id"]: row["v"] for row in logged.to_arrow().to_pylist()}
