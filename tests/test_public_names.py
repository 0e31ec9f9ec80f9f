"""The library's face: every public name is there, and none loads what it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import storage_lib


def test_every_public_name_is_there() -> None:
    for name in storage_lib.__all__:
        assert getattr(storage_lib, name).__name__ == name
    assert set(dir(storage_lib)) == set(storage_lib.__all__)


def test_a_name_that_does_not_exist_is_said() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = storage_lib.nothing


@pytest.mark.parametrize("program", ["storage_lib.errors.StorageError", "storage_lib.spark.SinkSpec"])
def test_modules_are_reached_by_their_package(program: str) -> None:
    script = f"import storage_lib, sys; {program}; assert 'pyspark' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_errors_come_without_arrow() -> None:
    script = "from storage_lib.errors import StorageError; import sys; assert 'pyarrow' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
