"""Spark's Python workers exclude their imported modules from garbage collection."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from itertools import repeat

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark.tasks import worker_garbage
from storage_lib.spark.tasks.worker_garbage import spare_what_is_imported


@pytest.fixture(autouse=True)
def _thaw(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gc.unfreeze()
    monkeypatch.setattr(worker_garbage, "_TURNS", iter(repeat(None, 2)))
    yield
    gc.unfreeze()


@pytest.mark.parametrize("daemon", ["pyspark.daemon", "storage_lib.spark.runtime.warm_daemon"])
def test_a_process_of_sparks_daemon_sets_apart_what_lives_after_its_first_requests(
    daemon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(daemon, None))

    at_first: list[list[int]] = [[]]
    spare_what_is_imported()
    meanwhile: list[list[int]] = [[]]
    spare_what_is_imported()
    later: list[list[int]] = [[]]
    spare_what_is_imported()

    assert not is_looked_through(at_first)
    assert not is_looked_through(meanwhile)
    assert is_looked_through(later), "what comes later may become garbage"


def is_looked_through(wanted: object) -> bool:
    """Return whether the collector tracks the object: frozen objects are in no generation."""
    return any(each is wanted for each in gc.get_objects())


@pytest.mark.parametrize("name", ["pytest", None])
def test_other_processes_are_left_alone(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None if name is None else ModuleSpec(name, None))

    here: list[list[int]] = [[]]

    spare_what_is_imported()

    assert is_looked_through(here)
