"""Calls of Airflow's API by a task, over a real socket: the user, and errors for refused calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dynamic_table.connection.airflow_api import AirflowApi
from dynamic_table.table_pools import DeclaredPool
from storage_lib.errors import InvalidInputError, UnavailableError

PASSWORD = "right"  # noqa: S105  of a server that lives for a test


class Pools(ThreadingHTTPServer):
    """Airflow's pools API behind a password, as far as a task needs it; ``asked`` lists the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), PoolsHandler)
        self.pools: dict[str, int] = {}
        self.asked: list[str] = []
        self.status: int | None = None


class PoolsHandler(BaseHTTPRequestHandler):
    server: Pools

    def do_GET(self) -> None:
        if self._is_let_in():
            name = self.path.rpartition("/")[2]
            slots = self.server.pools.get(name)
            self._answer(404 if slots is None else 200, {"name": name, "slots": slots})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/auth/token":
            known = body == {"username": "ada", "password": PASSWORD}
            self._answer(201 if known else 401, {"access_token": "known"} if known else {"detail": "who?"})
        elif self._is_let_in():
            is_new = body["name"] not in self.server.pools
            self.server.pools.setdefault(body["name"], body["slots"])
            self._answer(201 if is_new else 409, {})

    def _is_let_in(self) -> bool:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.status is not None:
            self._answer(self.server.status, {"detail": "no"})
        elif self.headers["Authorization"] == "Bearer known":
            return True
        else:
            self._answer(401, {"detail": "who?"})
        return False

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Pools]:
    with Pools() as pools:
        thread = threading.Thread(target=pools.serve_forever)
        thread.start()
        yield pools
        pools.shutdown()
        thread.join()


def connect(monkeypatch: pytest.MonkeyPatch, server: Pools, password: str = PASSWORD) -> AirflowApi:
    connection = {"conn_type": "http", "host": "127.0.0.1", "port": server.server_port}
    connection |= {"login": "ada", "password": password}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_API", json.dumps(connection))
    return AirflowApi()


def test_a_pool_is_made_once_and_compared_afterwards(monkeypatch: pytest.MonkeyPatch, server: Pools) -> None:
    api = connect(monkeypatch, server)

    for _ in range(2):
        pool = DeclaredPool("dynamic_table.a.b", 2, "", api)
        assert pool.drift() == []
        pool.create()

    assert server.pools == {"dynamic_table.a.b": 2}
    assert DeclaredPool("dynamic_table.a.b", 3, "", api).drift() == [
        "pool dynamic_table.a.b has 2 slots, 3 are declared"
    ]
    assert server.asked.count("POST /api/v2/pools") == 1


def test_a_pool_that_somebody_else_made_first_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, server: Pools) -> None:
    api = connect(monkeypatch, server)

    assert api.create_pool("a", 1, "") is True
    assert api.create_pool("a", 5, "") is False
    assert server.pools == {"a": 1}


def test_a_wrong_password_and_a_missing_permission_say_what_to_make(
    monkeypatch: pytest.MonkeyPatch, server: Pools
) -> None:
    with pytest.raises(InvalidInputError, match=r"POST /auth/token by 401.*\n.*'airflow_api'") as refused:
        connect(monkeypatch, server, password="wrong").pool_slots("a")  # noqa: S106  it is
    assert "wrong" not in str(refused.value)

    server.status = 403
    with pytest.raises(InvalidInputError, match=r"GET /pools/a by 403.*\n.*with permission to read and create pools"):
        connect(monkeypatch, server).pool_slots("a")


def test_a_server_in_trouble_is_tried_again(monkeypatch: pytest.MonkeyPatch, server: Pools) -> None:
    server.status = 502
    api = connect(monkeypatch, server)
    with pytest.raises(UnavailableError, match="502"):
        api.pool_slots("a")

    nobody = AirflowApi("nobody_there")
    monkeypatch.setenv("AIRFLOW_CONN_NOBODY_THERE", '{"conn_type": "http", "host": "127.0.0.1", "port": 1}')
    with pytest.raises(UnavailableError, match=r"http://127.0.0.1:1 does not answer"):
        nobody.pool_slots("a")
