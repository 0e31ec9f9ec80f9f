"""Spark's scratch files on a local master are readable by their owner only, and are deleted with the session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage_lib.spark.runtime.scratch_directory import private_scratch_directory
from tests.support.spark_processes import clean_environment

HERE = Path(__file__).resolve().parents[3]
SHUFFLES_CACHES_AND_STREAMS = """
import json, os, sys
from pathlib import Path
from pyspark import StorageLevel
from storage_lib.spark import session

spark = session(master="local[1]", conf={"spark.sql.shuffle.partitions": "2"})
rows = spark.range(1000).repartition(2).persist(StorageLevel.DISK_ONLY)
rows.groupBy("id").count().collect()
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().groupBy("value").count()
query = stream.writeStream.outputMode("complete").format("noop").trigger(availableNow=True).start()
query.awaitTermination()
root = Path(sys.argv[1])
print("FOUND", json.dumps([
    (str(each.relative_to(root)), each.lstat().st_mode & 0o777, each.is_dir()) for each in root.rglob("*")
]))
"""
ONE_SESSION = """
import json, os, sys
from storage_lib.spark import session

session(master="local[1]").range(2).repartition(2).collect()
print("FOUND", json.dumps(os.listdir(sys.argv[1])))
"""


def found(script: str, directory: Path, **environment: str) -> list[Any]:
    environment = {
        **{key: value for key, value in clean_environment().items() if not key.endswith("LOCAL_DIRS")},
        "PYTHONPATH": os.pathsep.join(sys.path), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={directory}", **environment,
    }  # fmt: skip
    # The JVM also holds the output open, so this waits until it has ended.
    ran = subprocess.run(
        [sys.executable, "-c", script, str(directory)],
        env=environment, cwd=HERE, capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip
    said = [line.partition("FOUND ")[2] for line in ran.stdout.splitlines() if "FOUND " in line]
    assert said, ran.stderr[-2000:]
    entries: list[Any] = json.loads(said[0])
    return entries


@pytest.mark.spark
@pytest.mark.integration
def test_no_scratch_file_of_a_local_spark_is_below_a_directory_that_others_may_enter(tmp_path: Path) -> None:
    entries = found(SHUFFLES_CACHES_AND_STREAMS, tmp_path)

    modes = {path: mode for path, mode, _ in entries}
    files = [str(path) for path, _, is_directory in entries if not is_directory]
    assert {part for path in files for part in path.split("/") if part.startswith(("blockmgr-", "temporary-"))}
    assert {modes[path.split("/")[0]] for path in files} == {0o700}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.integration
def test_a_configured_scratch_directory_is_used_instead(tmp_path: Path) -> None:
    others, own = tmp_path / "tmp", tmp_path / "own"
    others.mkdir()
    own.mkdir()
    names = found(ONE_SESSION, others, SPARK_LOCAL_DIRS=str(own))
    assert [name for name in names if name.startswith(("dynamic-table-spark-", "blockmgr-"))] == []
    assert private_scratch_directory({"spark.local.dir": str(own)}) is None
