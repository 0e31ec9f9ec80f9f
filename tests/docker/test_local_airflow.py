"""The local Airflow does not accept responses of another Airflow."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from errno import ENOSPC
from pathlib import Path

import pytest

from airflow_rest import AirflowError, AirflowRest
from local_airflow import LocalAirflow, _send, _start_ticks
from tests.support.processes import lives
from tests.support.waiting import wait_until

pytestmark = pytest.mark.airflow


def test_a_port_on_which_somebody_listens_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]

        with pytest.raises(AirflowError, match=rf"Port {port} .*choose another port"):
            LocalAirflow(home=tmp_path / "airflow", port=port).start()
    assert list((tmp_path / "airflow").iterdir()) == []


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"SSH-2.0-OpenSSH\r\n"])
def test_somebody_else_is_no_healthy_airflow(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:

        def reply() -> None:
            connection, _ = somebody.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        replying = threading.Thread(target=reply)
        replying.start()

        assert not AirflowRest(f"http://127.0.0.1:{somebody.getsockname()[1]}").is_healthy()
        replying.join()


def test_a_number_that_is_now_somebody_elses_process_is_not_ours(tmp_path: Path) -> None:
    """After a reboot the process id in the file may belong to another process."""
    local = LocalAirflow(home=tmp_path)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as somebody:
        state = {"port": 1, "pids": {"scheduler": somebody.pid}, "started": {"scheduler": 1}}
        (tmp_path / "local_airflow.json").write_text(json.dumps(state))

        assert local.process_ids() == set()
        local.stop()
        assert somebody.poll() is None
        somebody.kill()
    assert not (tmp_path / "local_airflow.json").exists()


@pytest.mark.timeout(300)  # it used to wait until its time limit
def test_what_a_component_left_that_died_is_ended_at_once(tmp_path: Path) -> None:
    local = LocalAirflow(home=tmp_path)
    leaves_a_child = "(trap '' TERM; echo is there; exec sleep 3600) & exec sleep 3600"
    with subprocess.Popen(["sh", "-c", leaves_a_child], start_new_session=True, stdout=subprocess.PIPE) as component:
        assert component.stdout is not None
        component.stdout.readline()
        started = _start_ticks(component.pid)
        state = {"port": 1, "pids": {"scheduler": component.pid}, "started": {"scheduler": started}}
        (tmp_path / "local_airflow.json").write_text(json.dumps(state))
        # Reap no child before the end of the block, as for Airflow's components.
        local.kill("scheduler")

        local.stop(timeout=3600)

        assert local.process_ids() == set()


def test_a_component_that_can_not_be_noted_is_ended_and_the_others_can_still_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, launched, write_text = LocalAirflow(home=tmp_path), tmp_path / "pids", Path.write_text
    monkeypatch.setattr("local_airflow._airflow", lambda: ["sh", "-c", f"echo $$ >> {launched}; exec sleep 3600"])
    with subprocess.Popen(["sleep", "3600"], start_new_session=True) as triggerer:
        pids = dict.fromkeys(("triggerer", "scheduler"), triggerer.pid)
        started = dict.fromkeys(pids, _start_ticks(triggerer.pid))
        (tmp_path / "local_airflow.json").write_text(json.dumps({"port": 1, "pids": pids, "started": started}))

        def full(path: Path, content: str) -> int:
            wait_until(lambda: launched.exists() and launched.read_text())
            write_text(path, content[: len(content) // 2])
            raise OSError(ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            local.restart("scheduler")
        monkeypatch.undo()
        unnoted = int(launched.read_text())
        try:
            wait_until(lambda: not lives(unnoted))
            local.stop()
            assert not lives(triggerer.pid)
        finally:
            for pid in (unnoted, triggerer.pid):
                _send(pid, signal.SIGKILL)


def test_nothing_of_an_outer_airflow_shines_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "of another")

    settings = LocalAirflow(home=tmp_path, environment={"AIRFLOW__CORE__PARALLELISM": "2"})._environment(8080)

    assert "AIRFLOW__CORE__FERNET_KEY" not in settings
    assert settings["AIRFLOW__CORE__PARALLELISM"] == "2"


def test_a_database_that_can_not_be_made_is_told_with_what_airflow_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local_airflow._airflow", lambda: ["sh", "-c", "echo disk full; exit 1"])

    with pytest.raises(AirflowError, match=r"(?s)database could not be created.*migrate\.log.*disk full"):
        LocalAirflow(home=tmp_path / "airflow").start()
    assert not (tmp_path / "airflow" / "local_airflow.json").exists()


def test_an_airflow_that_was_stopped_meanwhile_is_told_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]

    with pytest.raises(AirflowError, match=rf"no answer from http://127\.0\.0\.1:{port}.*Was Airflow stopped"):
        AirflowRest(f"http://127.0.0.1:{port}").run_state("provision", "run")


def test_stopping_what_does_not_run_does_nothing(tmp_path: Path) -> None:
    LocalAirflow(home=tmp_path / "airflow").stop()

    assert not (tmp_path / "airflow").exists()
