"""`make spark`: an environment of the locked packages with another version of Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stack_setup


@pytest.fixture
def commands(relocated_setup: Callable[[Callable[[], Path]], list[str]]) -> list[str]:
    """Return the commands that a relocated setup runs, which do nothing."""
    return relocated_setup(lambda: stack_setup.spark_environment("4.2"))


def test_another_spark_replaces_the_locked_one(commands: list[str], tmp_path: Path) -> None:
    stack_setup.main(["spark", "4.2"])

    place, release = tmp_path / ".local" / "spark_4_2", stack_setup.SPARKS["4.2"]
    kinds = ("uv venv", "pip sync", "--editable", f"pyspark=={release}")
    assert [next(kind for kind in kinds if kind in each) for each in commands if "uninstall" not in each] == [*kinds]
    assert all(str(place) in each for each in commands)


@pytest.mark.parametrize("arguments", [["spark"], ["spark", "3.5"], ["spark", "4.2.1"]])
def test_a_version_without_an_environment_is_refused_with_those_that_have_one(
    commands: list[str], arguments: list[str]
) -> None:
    with pytest.raises(
        SystemExit, match=r"^setup: no environment is known for Spark .*; there is one for 4\.0, 4\.1, "
    ):
        stack_setup.main(arguments)
    assert commands == []


def test_an_environment_that_has_lost_its_python_is_recreated(commands: list[str]) -> None:
    stack_setup.main(["spark", "4.2"])
    made = len(commands)

    stack_setup.main(["spark", "4.2"])

    assert len(commands) > made
    assert not stack_setup.is_usable(stack_setup.spark_environment("4.2"))


def test_the_spark_of_iceberg_has_nothing_of_the_project(
    relocated_setup: Callable[[Callable[[], Path]], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ".local" / "iceberg_spark"
    monkeypatch.setattr(stack_setup, "ICEBERG_SPARK", place)
    monkeypatch.setattr(stack_setup, "make_jars", lambda jars, *_: fetched.append(jars.name))
    commands = relocated_setup(lambda: place)
    fetched: list[str] = []
    place.parent.mkdir()

    stack_setup.set_up_spark_of_iceberg(Path("java"))

    assert [str(place) in each for each in commands] == [True, True]
    assert all(each in commands[-1] for each in stack_setup.SPARK_OF_ICEBERG)
    assert not any("--editable" in each for each in commands)
    assert fetched == ["iceberg_runtime"]
