"""Client of Airflow's own REST API, for tasks; it has the permissions of a connection's user.

The connection ``airflow_api`` holds the address (host, port, schema ``http`` or ``https``), a login and its password.
Without that connection the task calls its own API server without a login, which works only if the server has
``[core] simple_auth_manager_all_admins``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseHook

from dynamic_table.versions.sdk_conf import conf
from dynamic_table.versions.sdk_exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Connection

__all__ = ["AIRFLOW_CONN_ID", "AirflowApi"]

AIRFLOW_CONN_ID = "airflow_api"
REFUSED = (401, 403)
CONFLICT, MISSING = 409, 404
TIMEOUT_SECONDS = 30


class AirflowApi:
    """Calls the API as the user of a connection; an InvalidInputError names a missing permission or connection.

    :param airflow_conn_id: the connection; it need not exist.
    """

    def __init__(self, airflow_conn_id: str = AIRFLOW_CONN_ID) -> None:
        self.airflow_conn_id = airflow_conn_id

    def pool_slots(self, name: str) -> int | None:
        """Return the number of slots of a pool, or None if it does not exist."""
        answer = self._ask("GET", f"/pools/{quote(name, safe='')}", expected=(200, MISSING))
        return None if answer.status_code == MISSING else int(answer.json()["slots"])

    def create_pool(self, name: str, slots: int, description: str) -> bool:
        """Create a pool; return False if it already exists."""
        body = {"name": name, "slots": slots, "description": description}
        return bool(self._ask("POST", "/pools", body, expected=(201, CONFLICT)).status_code != CONFLICT)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, expected: tuple[int, ...]) -> Any:
        answer = self._send(method, f"/api/v2{path}", body, self._token)
        if answer.status_code not in expected:
            raise self._refusal(f"{method} {path}", answer)
        return answer

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, token: str | None) -> Any:
        import httpx

        from storage_lib.errors import UnavailableError

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return httpx.request(method, f"{self._address}{path}", json=body, headers=headers, timeout=TIMEOUT_SECONDS)
        except httpx.HTTPError as silent:
            message = f"Airflow's API at {self._address} does not answer {method} {path}: {silent}"
            raise UnavailableError(message) from silent

    def _refusal(self, asked: str, answer: Any) -> Exception:
        """Return the exception for an answer: UnavailableError, which is retryable, for 5xx, else InvalidInputError."""
        from storage_lib.errors import InvalidInputError, UnavailableError

        problem = f"Airflow's API at {self._address} answered {asked} by {answer.status_code}: {answer.text[:500]}"
        if answer.status_code in REFUSED:
            who = f"the login of connection {self.airflow_conn_id!r}" if self._connection else "who gives no password"
            remedy = (
                f"It does not allow {who} to do that. Add a connection {self.airflow_conn_id!r} (host, port, login, "
                "password) for a user with permission to read and create pools, or configure no pool."
            )
            return InvalidInputError(f"{problem}\n{remedy}")
        return UnavailableError(problem) if answer.status_code >= 500 else InvalidInputError(problem)

    @cached_property
    def _connection(self) -> Connection | None:
        try:
            return BaseHook.get_connection(self.airflow_conn_id)
        except AirflowNotFoundException:
            return None

    @cached_property
    def _address(self) -> str:
        """URL of the API server, without a trailing slash."""
        connection = self._connection
        if connection and connection.host:
            host = connection.host if "://" in connection.host else f"{connection.schema or 'http'}://{connection.host}"
            return host.rstrip("/") + (f":{connection.port}" if connection.port else "")
        # The address that workers use; users may reach the server by another one.
        server = conf.get("core", "execution_api_server_url", fallback="") or ""
        server = server or str(conf.get("api", "base_url", fallback="") or "http://localhost:8080")
        parts = urlsplit(server)
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/execution')}"

    @cached_property
    def _token(self) -> str | None:
        connection = self._connection
        if connection is None or not connection.login:
            return None
        answer = self._send(
            "POST", "/auth/token", {"username": connection.login, "password": connection.password}, None
        )
        if answer.status_code != 201:
            raise self._refusal("POST /auth/token", answer)
        return str(answer.json()["access_token"])
