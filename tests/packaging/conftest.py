"""The distributions of a release, built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def build(kind: str, source: Path, into: Path) -> Path:
    """Build the distribution of ``kind`` (wheel or sdist) from the project at ``source``, and return its path."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", into], cwd=source, check=True)
    [built] = into.iterdir()
    return built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    return build("wheel", CHECKOUT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def dbt_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the dbt adapter."""
    return build("wheel", CHECKOUT / "dbt", tmp_path_factory.mktemp("dbt_wheel"))


@pytest.fixture(scope="session")
def wheel_of_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from the unpacked source distribution, outside of a git repository."""
    sdist = build("sdist", CHECKOUT, tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "--extract", "--file", sdist, "--directory", unpacked, "--strip-components=1"], check=True)
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel_of_sdist"))
