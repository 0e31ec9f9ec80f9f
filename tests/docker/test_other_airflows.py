"""`make airflow`: an environment of the locked packages with another version of Airflow, and its lock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stack_setup


@pytest.fixture
def commands(relocated_setup: Callable[[Callable[[], Path]], list[str]]) -> list[str]:
    """Return the commands that a relocated setup runs, which do nothing."""
    return relocated_setup(lambda: stack_setup.airflow_environment("3.1"))


def test_another_airflow_replaces_the_locked_one_and_what_it_needs(commands: list[str], tmp_path: Path) -> None:
    stack_setup.main(["airflow", "3.1"])

    place, lock = tmp_path / ".local" / "airflow_3_1", stack_setup.airflow_lock("3.1")
    kinds = ("uv venv", "pip sync", "--editable", f"--require-hashes --compile-bytecode --requirement {lock}")
    assert [next(kind for kind in kinds if kind in each) for each in commands if "uninstall" not in each] == [*kinds]
    assert all(str(place) in each for each in commands)


@pytest.mark.parametrize("arguments", [["airflow"], ["airflow", "2.11"], ["airflow", "3.1.8"]])
def test_a_version_without_an_environment_is_refused_with_those_that_have_one(
    commands: list[str], arguments: list[str]
) -> None:
    with pytest.raises(
        SystemExit, match=r"^setup: no environment is known for Airflow .*; there is one for 3\.1, 3\.2"
    ):
        stack_setup.main(arguments)
    assert commands == []


@pytest.mark.parametrize("version", stack_setup.AIRFLOWS)
def test_the_lock_of_another_airflow_has_its_release_and_no_pin_of_the_other_lock(version: str) -> None:
    lock = stack_setup.airflow_lock(version).read_text()
    pins = stack_setup.pins_of(lock)

    assert [pin.split()[0] for pin in pins if pin.startswith("apache-airflow==")] == [
        f"apache-airflow=={stack_setup.AIRFLOWS[version]}"
    ]
    assert all("--hash=sha256:" in pin for pin in pins)
    assert "://" not in lock
    assert stack_setup.differing_pins(stack_setup.LOCK.read_text(), lock) == lock


def test_pins_that_both_locks_have_are_left_out() -> None:
    lock = "a==1 \\\n    --hash=sha256:1\nb==1 \\\n    --hash=sha256:2\n"
    other = "a==1 \\\n    --hash=sha256:1\nb==2 \\\n    --hash=sha256:3\nc==1 \\\n    --hash=sha256:4\n"

    assert stack_setup.differing_pins(lock, other) == "b==2 \\\n    --hash=sha256:3\nc==1 \\\n    --hash=sha256:4\n"
