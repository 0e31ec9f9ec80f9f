"""Spark on this machine is its user's: it listens on loopback only, and only the owner can read its scratch files.

Its scratch files are deleted with the session.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from storage_lib.errors import InvalidInputError
from storage_lib.spark.runtime.loopback import loopback_settings
from storage_lib.spark.runtime.scratch_directory import private_scratch_directory
from tests.support.listening_sockets import is_loopback, listening, tree_of
from tests.support.spark_processes import clean_environment

HERE = Path(__file__).resolve().parents[3]
SHOWN = """
def show(*_):
    import json, os
    from pathlib import Path
    from tests.support.listening_sockets import listening, tree_of
    root = Path(ROOT)
    files = [(str(path.relative_to(root)), path.lstat().st_mode & 0o777, path.is_dir()) for path in root.rglob("*")]
    print("SHOWN", json.dumps({"sockets": sorted(listening(tree_of(os.getpid()))), "files": files}))
"""
SHUFFLES_CACHES_STREAMS_AND_PYTHON = """
from pyspark import StorageLevel
from storage_lib.spark import session

spark = session(master="local[1]", conf={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "true"})
rows = spark.range(1000).repartition(2).persist(StorageLevel.DISK_ONLY)
rows.groupBy("id").count().collect()
stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().groupBy("value").count()
query = stream.writeStream.outputMode("complete").format("noop").trigger(availableNow=True).start()
query.awaitTermination()
spark.range(2).rdd.map(lambda row: row).count()
show()
"""
NO_MASTER = """
from storage_lib.spark import session

session().range(2).repartition(2).collect()
show()
"""
COMMAND_LINE = """
from storage_lib.cli import app, sql_command

sql_command._run = show
import sys
sys.argv = ["dynamic-table", "-w", ROOT + "-warehouse", "sql", "-e", "SELECT 1"]
app.app()
"""


def shown(script: str, directory: Path, **environment: str) -> tuple[list[Any], list[Any]]:
    """Return the sockets on which a session listens, and the files below a directory for temporary ones."""
    inherited = {
        key: value
        for key, value in clean_environment().items()
        if key != "SPARK_LOCAL_IP" and not key.endswith("LOCAL_DIRS")
    }
    inherited |= {"PYTHONPATH": os.pathsep.join(sys.path), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={directory}"}
    # The JVM also holds the output open, so this waits until it has ended.
    ran = subprocess.run(
        [sys.executable, "-c", f"ROOT = {str(directory)!r}\n{SHOWN}{script}"],
        env={**inherited, **environment}, cwd=HERE, capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip
    [line] = [line for line in ran.stdout.splitlines() if "SHOWN " in line] or [ran.stderr[-2000:]]
    found = json.loads(line.partition("SHOWN ")[2])
    assert len(found["sockets"]) >= 3  # Python's gateway, the driver, the block manager
    return found["sockets"], found["files"]


@pytest.mark.spark
@pytest.mark.integration
def test_a_local_session_listens_on_loopback_and_its_files_are_below_directories_of_its_owner(tmp_path: Path) -> None:
    sockets, entries = shown(SHUFFLES_CACHES_STREAMS_AND_PYTHON, tmp_path)

    assert [each for each in sockets if not is_loopback(each[0])] == []
    modes = {path: mode for path, mode, _ in entries}
    files = [str(path) for path, _, is_directory in entries if not is_directory]
    assert {part for path in files for part in path.split("/") if part.startswith(("blockmgr-", "temporary-"))}
    assert {modes[path.split("/")[0]] for path in files} == {0o700}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.integration
def test_a_session_that_names_no_master_listens_on_loopback_and_uses_a_configured_directory(tmp_path: Path) -> None:
    others, own = tmp_path / "tmp", tmp_path / "own"
    others.mkdir()
    own.mkdir()

    sockets, entries = shown(NO_MASTER, others, SPARK_LOCAL_DIRS=str(own))

    assert [each for each in sockets if not is_loopback(each[0])] == []
    names = [path for path, _, _ in entries]
    assert [name for name in names if name.startswith(("dynamic-table-spark-", "blockmgr-"))] == []
    assert private_scratch_directory({"spark.local.dir": str(own)}) is None


@pytest.mark.spark
@pytest.mark.integration
def test_the_session_of_the_command_line_listens_on_loopback(tmp_path: Path) -> None:
    sockets, _ = shown(COMMAND_LINE, tmp_path)

    assert [each for each in sockets if not is_loopback(each[0])] == []


@pytest.mark.parametrize(
    ("master", "settings", "is_local"),
    [
        ("local", {}, True),
        ("local[2]", {}, True),
        ("local[*, 3]", {}, True),
        (None, {"spark.master": "local[1]"}, True),
        ("spark://host:7077", {}, False),
        ("spark://host:7077", {"spark.master": "local"}, False),
        ("k8s://https://host", {}, False),
        ("local-cluster[1,1,1024]", {}, False),
    ],
)
def test_only_a_local_master_is_bound(master: str | None, settings: dict[str, str], *, is_local: bool) -> None:
    bound = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    assert loopback_settings(master, settings) == (bound if is_local else {})


def test_the_ui_is_refused_where_it_would_be_offered_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def jvm(address: str | None) -> Any:
        return SimpleNamespace(System=SimpleNamespace(getenv=lambda _name: address))

    monkeypatch.setattr(SparkContext, "_gateway", object())
    for address in (None, "192.0.2.1"):
        monkeypatch.setattr(SparkContext, "_jvm", jvm(address))
        with pytest.raises(InvalidInputError, match=r"every interface.*SPARK_LOCAL_IP=127"):
            loopback_settings("local", {"spark.ui.enabled": "true"})
    monkeypatch.setattr(SparkContext, "_jvm", jvm("127.0.0.1"))
    assert loopback_settings("local", {"spark.ui.enabled": "true"})


def test_a_socket_beyond_loopback_is_found() -> None:
    """Proves that the other tests of this kind can fail."""
    import socket

    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.create_server(("127.0.0.1", 0)) as here:  # noqa: S104
        found = listening(tree_of(os.getpid()))
        assert ("0.0.0.0", everywhere.getsockname()[1]) in found  # noqa: S104
        assert ("127.0.0.1", here.getsockname()[1]) in found
    assert [is_loopback(each) for each in ("127.0.0.1", "::1", "::ffff:7f00:1", "::", "0.0.0.0", "192.0.2.2")] == [  # noqa: S104
        True, True, True, False, False, False,
    ]  # fmt: skip
