"""Spark on this machine listens on the loopback interface only."""

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
from tests.support.listening_sockets import is_loopback, listening, tree_of
from tests.support.spark_processes import clean_environment

HERE = Path(__file__).resolve().parents[3]
SHOWN = """
def show(*_):
    import json, os
    from tests.support.listening_sockets import listening, tree_of
    print("LISTENS", json.dumps(sorted(listening(tree_of(os.getpid())))))
"""
SESSIONS = {
    "a session with the UI": "from storage_lib.spark import session\n"
    "spark = session(master='local[1]', conf={'spark.ui.enabled': 'true'})\n"
    "spark.range(2).rdd.map(lambda row: row).count()\nshow()",
    "a session that names no master": "from storage_lib.spark import session\nsession()\nshow()",
    "dynamic-table sql": "from storage_lib.cli import app, sql_command\nsql_command._run = show\n"
    "import sys\nsys.argv = ['dynamic-table', '-w', sys.argv[1], 'sql', '-e', 'SELECT 1']\napp.app()",
}


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.parametrize("script", SESSIONS.values(), ids=SESSIONS.keys())
def test_every_socket_of_a_local_spark_and_its_workers_is_on_loopback(script: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in clean_environment().items() if name != "SPARK_LOCAL_IP"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", SHOWN + script, str(tmp_path)],
        env=environment, cwd=HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip

    told = [line.partition("LISTENS ")[2] for line in ran.stdout.splitlines() if "LISTENS " in line]
    assert told, ran.stderr[-2000:]
    sockets = json.loads(told[0])
    assert len(sockets) >= 3  # Python's gateway, the driver, the block manager
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
