"""Spark's Python processes do not look for garbage in what they have imported, again and again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from itertools import repeat

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import worker_garbage
from storage_lib.spark.worker_garbage import spare_what_is_imported


@pytest.fixture(autouse=True)
def _thaw(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gc.unfreeze()
    monkeypatch.setattr(worker_garbage, "_TURNS", iter(repeat(None, 2)))
    yield
    gc.unfreeze()


@pytest.mark.parametrize("daemon", ["pyspark.daemon", "storage_lib.spark.warm_daemon"])
def test_a_process_of_sparks_daemon_sets_apart_what_lives_after_its_first_requests(
    daemon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(daemon, None))

    spare_what_is_imported()
    first = gc.get_freeze_count()
    imported_meanwhile: list[list[int]] = [[] for _ in range(50)]
    spare_what_is_imported()
    second = gc.get_freeze_count()
    held_later: list[list[int]] = [[] for _ in range(50)]
    spare_what_is_imported()

    assert first > 0
    assert first + len(imported_meanwhile) <= second
    assert gc.get_freeze_count() < second + len(held_later), "what comes later may become garbage"


@pytest.mark.parametrize("name", ["pytest", None])
def test_other_processes_are_left_alone(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None if name is None else ModuleSpec(name, None))

    spare_what_is_imported()

    assert gc.get_freeze_count() == 0
