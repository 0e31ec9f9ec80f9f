from __future__ import annotations

import pickle
import time

from storage_lib.io.environment import Environment, SystemClock, system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.fake_environment import FakeClock, fake_environment


def test_the_system_environment_tells_the_time_and_new_names() -> None:
    environment = system_environment()

    assert isinstance(environment.file_io, LocalFileIO)
    assert abs(environment.clock.now_millis() - time.time() * 1000) < 60_000
    assert environment.clock.monotonic() <= environment.clock.monotonic()
    assert len({environment.new_name() for _ in range(1000)}) == 1000


def test_the_system_clock_does_not_wait_for_the_past() -> None:
    SystemClock().sleep(-1)


def test_the_system_environment_travels_to_other_processes() -> None:
    copy: Environment = pickle.loads(pickle.dumps(system_environment()))  # noqa: S301  our own bytes

    assert copy.new_name() != copy.new_name()
    assert isinstance(copy.file_io, LocalFileIO)


def test_in_a_fake_environment_time_passes_only_when_told() -> None:
    clock = FakeClock(now_millis=1000)
    environment = fake_environment(clock=clock)
    files = environment.file_io
    assert isinstance(files, MemoryFileIO)

    files.write_bytes("/a", b"")
    environment.clock.sleep(1.5)
    files.write_bytes("/b", b"")

    assert (clock.now_millis(), clock.monotonic(), clock.slept) == (2500, 1.5, [1.5])
    assert {entry.name: entry.modified_ms for entry in files.list_directory("/")} == {"a": 1000, "b": 2500}
    assert [environment.new_name(), environment.new_name()] == ["name-1", "name-2"]
