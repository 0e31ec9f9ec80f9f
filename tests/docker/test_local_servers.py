"""The local servers report missing requirements, listen on loopback only, and leave no process when stopped."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest

from local_connect import ConnectNotSetUpError, LocalConnect, LocalConnectError
from local_hdfs import HdfsNotSetUpError, LocalHdfs, LocalHdfsError
from local_iceberg_rest import IcebergRestNotSetUpError, LocalIcebergRest, LocalIcebergRestError
from local_metastore import LocalMetastore, LocalMetastoreError, MetastoreNotSetUpError
from local_postgres import LocalPostgres, LocalPostgresError, PostgresNotSetUpError
from local_process import LOOPBACK, PORTS, LocalProcess
from local_registry import LocalRegistry, LocalRegistryError, RegistryNotSetUpError
from local_s3 import PROGRAM, LocalS3, LocalS3Error, S3NotSetUpError


def test_what_is_not_installed_asks_for_make_servers(tmp_path: Path) -> None:
    with pytest.raises(S3NotSetUpError, match="make servers"):
        LocalS3(tmp_path, program=tmp_path / "nowhere").start()
    with pytest.raises(HdfsNotSetUpError, match="make servers"):
        LocalHdfs(tmp_path, jars=tmp_path / "nowhere").start()
    with pytest.raises(RegistryNotSetUpError, match="make servers"):
        LocalRegistry(tmp_path, app=tmp_path / "nowhere").start()
    with pytest.raises(ConnectNotSetUpError, match="make servers"):
        LocalConnect(tmp_path, "127.0.0.1:9092", jars=tmp_path / "nowhere").start()
    with pytest.raises(PostgresNotSetUpError, match="make servers"):
        LocalPostgres(tmp_path, programs=tmp_path / "nowhere").start()
    with pytest.raises(IcebergRestNotSetUpError, match="make servers"):
        LocalIcebergRest(tmp_path, jars=tmp_path / "nowhere").start()
    with pytest.raises(MetastoreNotSetUpError, match="make setup"):
        LocalMetastore(tmp_path, jars=tmp_path / "nowhere").start()


def test_a_server_never_started_has_no_address_and_is_stopped_already(tmp_path: Path) -> None:
    servers = (LocalHdfs, LocalIcebergRest, LocalMetastore, LocalPostgres, LocalRegistry, LocalS3)
    for server in (kind(tmp_path) for kind in servers):
        server.stop()
        assert server.pid is None
    with pytest.raises(LocalConnectError, match="not been started"):
        LocalConnect(tmp_path, "127.0.0.1:9092").put("shop", {})
    with pytest.raises(LocalS3Error, match="not been started"):
        _ = LocalS3(tmp_path).options
    with pytest.raises(LocalHdfsError, match="not been started"):
        _ = LocalHdfs(tmp_path).url
    with pytest.raises(LocalIcebergRestError, match="not been started"):
        _ = LocalIcebergRest(tmp_path).uri
    with pytest.raises(LocalRegistryError, match="not been started"):
        _ = LocalRegistry(tmp_path).url
    with pytest.raises(LocalPostgresError, match="not been started"):
        _ = LocalPostgres(tmp_path).uri
    with pytest.raises(LocalMetastoreError, match="not been started"):
        _ = LocalMetastore(tmp_path).uri


def test_a_server_that_cannot_start_shows_what_it_said(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho no such luck\n")
    program.chmod(0o755)

    with pytest.raises(LocalS3Error, match=r"(?s)The S3 server ended right after its start.*s3\.log.*no such luck"):
        LocalS3(tmp_path / "home", program=program).start()


def test_a_server_that_does_not_answer_in_time_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\nimport time\nprint('still thinking', flush=True)\ntime.sleep(60)\n")
    program.chmod(0o755)
    server = LocalS3(tmp_path / "home", program=program)
    log, clock = tmp_path / "home" / "s3.log", time.monotonic

    def thinks() -> bool:
        return log.exists() and "still thinking" in log.read_text()

    launch = LocalProcess.launch

    def launched_and_thinking(process: LocalProcess, *command: object, env: dict[str, str]) -> None:
        launch(process, *command, env=env)
        # A busy machine may look at the clock again only now: the time until here counts as well.
        while not thinks():
            time.sleep(0.01)

    monkeypatch.setattr(LocalProcess, "launch", launched_and_thinking)
    monkeypatch.setattr("local_process.time.monotonic", lambda: clock() + (3_600 if thinks() else 0))
    with pytest.raises(LocalS3Error, match=r"(?s)did not answer in time.*s3\.log.*still thinking"):
        server.start(timeout=1_200)
    assert server.pid is None


@pytest.mark.s3
@pytest.mark.integration
def test_an_s3_server_listens_on_loopback_only_keeps_its_data_and_ends(tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip("there is no S3 server here: run `make servers`")
    with LocalS3(tmp_path) as server:
        endpoint, port = server.endpoint, int(server.endpoint.rsplit(":", 1)[1])
        assert port in PORTS
        socket.create_connection((LOOPBACK, port)).close()
        server.stop()
        assert server.pid is None
        assert server.start().endpoint == endpoint
    assert server.pid is None
