"""The local Airflow does not take another's answers for its own."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from airflow_rest import AirflowError, AirflowRest
from local_airflow import LocalAirflow

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


def test_stopping_what_does_not_run_does_nothing(tmp_path: Path) -> None:
    LocalAirflow(home=tmp_path / "airflow").stop()

    assert not (tmp_path / "airflow").exists()
