"""If eight processes create one name, one wins and its content stays: commits rely on this guarantee."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import creating_process
from tests.support.creating_process import content
from tests.support.storages import OF_SERVERS, Storage

REPOSITORY = Path(__file__).parents[2]
PROCESSES = 8


class Racers:
    """Processes that are shared by the module's tests, so that they start only once."""

    def __init__(self, stack: ExitStack) -> None:
        command = [sys.executable, "-m", creating_process.__name__]
        self._processes = [
            stack.enter_context(
                subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(PROCESSES)
        ]
        for process in self._processes:
            # Leaving the stack waits for the process, which ends when its input closes.
            assert self._answer(process) == "ready"

    def race(self, storage: Storage, name: str, first: int) -> list[int]:
        """Let all processes create one name at once, starting with ``first``; return those that report success."""
        for turn in range(PROCESSES):
            me = (first + turn) % PROCESSES
            stdin = self._processes[me].stdin
            assert stdin is not None
            job = {"root": storage.root, "options": dict(storage.options), "name": name, "me": str(me)}
            stdin.write(json.dumps(job) + "\n")
            stdin.flush()
        return [me for me, process in enumerate(self._processes) if json.loads(self._answer(process))]

    @staticmethod
    def _answer(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()


@pytest.fixture(scope="module")
def racers() -> Iterator[Racers]:
    with ExitStack() as stack:
        yield Racers(stack)


@pytest.mark.integration
@pytest.mark.parametrize("storage", OF_SERVERS, indirect=True)
def test_of_eight_processes_one_creates_each_name(storage: Storage, racers: Racers) -> None:
    winners = set()
    for number in range(6 if storage.root.startswith("hdfs:") else 40):
        name = f"snapshot-{number}"

        made = racers.race(storage, name, first=number)

        assert len(made) == 1
        assert storage.files.read_bytes(f"{storage.root}/{name}") == content(name, str(made[0]))
        assert [entry.name for entry in storage.files.list_directory(storage.root)] == [name]
        storage.files.delete(f"{storage.root}/{name}")
        winners |= set(made)
    assert len(winners) > 1, "nobody raced"
