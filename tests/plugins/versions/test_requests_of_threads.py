"""Threads of triggers ask the supervisor at the same time, and each gets its own answer."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from airflow.jobs.triggerer_job_runner import TriggerCommsDecoder
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import GetVariable, VariableResult, _RequestFrame, _ResponseFrame

from dynamic_table.triggers.own_threads import in_own_thread

CALLS = 40


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request for a variable by its name, as the supervisor does."""
    import msgspec

    decoder: Any = msgspec.msgpack.Decoder(_RequestFrame)
    while True:
        length = int.from_bytes(await reader.readexactly(4), byteorder="big")
        request = decoder.decode(await reader.readexactly(length))
        await asyncio.sleep(0)  # the sender waits, and others send
        value = VariableResult(key=request.body["key"], value=request.body["key"])
        writer.write(_ResponseFrame(id=request.id, body=value.model_dump()).as_bytes())


async def ask_from_threads_and_from_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    their_reader, their_writer = await asyncio.open_connection(sock=theirs)
    supervisor = asyncio.create_task(answer(their_reader, their_writer))
    comms: Any = TriggerCommsDecoder(socket=ours, async_writer=writer, async_reader=reader)
    if hasattr(comms, "start_reader"):  # since Airflow 3.2
        await comms.start_reader()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)

    def ask(number: int) -> str:
        return str(comms.send(GetVariable(key=f"name {number}")).value)

    async def ask_in_the_loop(number: int) -> str:
        return str((await comms.asend(GetVariable(key=f"name {number}"))).value)

    in_threads = [in_own_thread("a store", ask, number) for number in range(CALLS)]
    in_the_loop = [ask_in_the_loop(number) for number in range(CALLS, 2 * CALLS)]
    answers = await asyncio.gather(*in_threads, *in_the_loop)
    tasks = [supervisor, *filter(None, [getattr(comms, "_reader_task", None)])]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for each in (writer, their_writer):
        each.close()
        await each.wait_closed()
    return answers


@pytest.mark.timeout(60)
def test_each_of_many_threads_gets_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = asyncio.run(ask_from_threads_and_from_the_loop(monkeypatch))

    assert answers == [f"name {number}" for number in range(2 * CALLS)]
