"""On the loopback interface, requests for a host other than the server's own are refused."""

from __future__ import annotations

from typing import Any

import pytest

from dynamic_table.policies.allowed_hosts import AllowedHosts, allowed_hosts
from tests.support.asgi_client import AsgiClient


async def server(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Any:
    def configure(base_url: str, *, workers: str = "", hosts: str = "") -> AsgiClient:
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
        monkeypatch.setenv("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", workers)
        monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__ALLOWED_HOSTS", hosts)
        return AsgiClient(AllowedHosts(server))

    return configure


def status(client: AsgiClient, host: str) -> int:
    return client.get("/api/v2/version", headers={"Host": host}).status_code


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080/airflow"])
def test_a_server_on_loopback_answers_to_names_of_loopback_only(configured: Any, base_url: str) -> None:
    client = configured(base_url)

    for own in ("127.0.0.1:8080", "localhost:8080", "[::1]:8080", "[::1]", "LOCALHOST"):
        assert status(client, own) == 200, own
    others = ("rebound.example:8080", "127.0.0.1.rebound.example", "localhost.rebound.example", "10.0.0.1", "")
    malformed = (
        "[::1",
        "::1",
        "[::1].rebound.example",
        "localhost:8080@rebound.example",
        "localhost:a",
        "localhost, x",
    )
    for other in (*others, *malformed):
        assert status(client, other) == 400, other


def test_tasks_reach_the_server_by_the_name_that_they_are_given(configured: Any) -> None:
    client = configured("http://127.0.0.1:8080", workers="http://airflow-api-server:8080/execution/")

    assert [status(client, host) for host in ("airflow-api-server:8080", "airflow-api-server.example")] == [200, 400]


def test_a_server_with_a_public_name_is_called_by_any_unless_names_are_listed(configured: Any) -> None:
    assert status(configured("https://airflow.example.com/a"), "behind-a-proxy.example") == 200
    listed = configured("https://airflow.example.com/a", hosts="flow.example.com, *.inner.example")

    for own in ("airflow.example.com", "flow.example.com", "one.inner.example", "127.0.0.1:8080"):
        assert status(listed, own) == 200, own
    assert status(listed, "behind-a-proxy.example") == 400
    assert "*" not in allowed_hosts()
