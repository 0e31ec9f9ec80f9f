"""Writing requests to an API server on SQLite run one at a time; other databases are not limited."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from airflow.configuration import conf

from dynamic_table.policies.one_write_at_a_time import OneWriteAtATime

SQLITE, POSTGRES = "sqlite:////airflow.db?timeout=60", "postgresql+psycopg2://airflow@db/airflow"


@pytest.mark.parametrize(
    ("database", "methods", "together"),
    [
        (SQLITE, ("POST", "PATCH", "DELETE"), 1),
        (SQLITE, ("GET", "POST", "GET"), 3),
        (POSTGRES, ("POST", "PATCH", "DELETE"), 3),
    ],
)
def test_only_writes_to_sqlite_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch, database: str, methods: tuple[str, ...], together: int
) -> None:
    monkeypatch.setattr(conf, "get", lambda section, key: database)

    assert asyncio.run(_most_at_once(methods)) == together


def test_a_write_that_fails_lets_the_next_one_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "get", lambda section, key: SQLITE)

    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise ConnectionError

    async def twice() -> list[BaseException | None]:
        app = OneWriteAtATime(fail)
        requests = (app({"type": "http", "method": "POST"}, _empty, _never) for _ in range(2))
        return await asyncio.gather(*requests, return_exceptions=True)

    assert [type(error) for error in asyncio.run(twice())] == [ConnectionError] * 2


def test_a_client_that_stands_still_in_its_request_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "get", lambda section, key: SQLITE)
    bodies: list[bytes] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        message: dict[str, Any] = {"type": "http.request", "more_body": True}
        while message.get("more_body"):
            message = await receive()
            bodies.append(message.get("body", message["type"].encode()))

    async def first_stands_still() -> None:
        app, continues = OneWriteAtATime(application), asyncio.Event()
        half: dict[str, Any] = {"type": "http.request", "body": b"half", "more_body": True}
        sent = iter([half, {"type": "http.disconnect"}])

        async def slowly() -> Any:
            message = next(sent)
            if message["type"] == "http.disconnect":
                await continues.wait()
            return message

        first = asyncio.create_task(app({"type": "http", "method": "POST"}, slowly, _never))
        await asyncio.sleep(0)
        await asyncio.wait_for(app({"type": "http", "method": "POST"}, _empty, _never), 5)
        continues.set()
        await first

    asyncio.run(first_stands_still())

    assert bodies == [b"", b"half", b"http.disconnect"]


async def _most_at_once(methods: tuple[str, ...]) -> int:
    """Send concurrent requests to an application that waits for all of them; return its maximum concurrency."""
    inside, most = 0, 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal inside, most
        inside += 1
        for _ in range(10):  # event loop iterations, in which every admitted request enters
            await asyncio.sleep(0)
        most = max(most, inside)
        inside -= 1

    app = OneWriteAtATime(application)
    await asyncio.gather(*(app({"type": "http", "method": method}, _empty, _never) for method in methods))
    return most


async def _empty() -> Any:
    return {"type": "http.request", "body": b""}


async def _never(*_: Any) -> Any:
    raise AssertionError
