"""The list of planted faults fits the code: each can be planted, and names tests that exist."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.__main__ import main
from tests.mutants.planted_fault import CHECKOUT, PlantedFault, StaleFaultError, load_faults

PROTOCOLS = {
    "airflow_retries",
    "changelog_producers",
    "commit",
    "conflicts",
    "deletion_vectors",
    "differentiator",
    "expiry",
    "iceberg_view",
    "lease",
    "log_repair",
    "merge_functions",
    "offsets",
    "pre_images",
    "refresh_positions",
    "spark_sink",
}
FAULT = PlantedFault(
    protocol="lease",
    name="never-waits",
    promise="A writer waits.",
    file="wait.py",
    before="waits = True",
    after="waits = False",
    tests=("tests/test_wait.py::test_a_writer_waits",),
)


def test_every_fault_can_be_planted() -> None:
    for fault in load_faults():
        fault.planted((CHECKOUT / fault.file).read_text(encoding="utf-8"))


def test_there_are_forty_six_faults_and_two_or_more_of_each_protocol() -> None:
    protocols = [each.protocol for each in load_faults()]

    assert len(protocols) == 47
    assert set(protocols) == PROTOCOLS
    assert [each for each in PROTOCOLS if protocols.count(each) < 2] == []


def test_every_fault_names_tests_that_exist() -> None:
    missing = [
        f"{fault.name}: {test}"
        for fault in load_faults()
        for test in fault.tests or ("no test",)
        if test not in _tests_in(CHECKOUT / test.partition("::")[0])
    ]

    assert missing == []


def test_every_promise_is_one_sentence() -> None:
    promises = [each.promise for each in load_faults()]

    assert [each for each in promises if not each.endswith(".") or ". " in each or "\n" in each] == []
    assert len(set(promises)) == len(promises)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("waits = False\n", "occurs 0 times in wait.py"),
        ("waits = True\nlater_waits = True\n", "occurs 2 times in wait.py"),
    ],
)
def test_a_fault_that_does_not_fit_the_code_any_more_is_an_error(text: str, words: str) -> None:
    with pytest.raises(StaleFaultError, match=f"never-waits.*{words}.*faults/lease.toml"):
        FAULT.planted(text)


def test_a_fault_that_does_not_compile_or_changes_nothing_is_an_error() -> None:
    with pytest.raises(StaleFaultError, match="does not compile"):
        FAULT.planted("if waits = True")
    with pytest.raises(StaleFaultError, match="changes nothing"):
        replace(FAULT, after="waits  =  True").planted("waits = True\n")


def test_an_unknown_name_is_refused_with_the_names_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "never-waits"]) == 1

    said = capsys.readouterr().err
    assert "no fault is named 'never-waits'" in said
    assert load_faults()[0].name in said


def _tests_in(path: Path) -> set[str]:
    """Return the ids of the test functions of a file, without parameters."""
    if not path.is_file():
        return set()
    home, found = path.relative_to(CHECKOUT).as_posix(), set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{home}::{node.name}" if isinstance(node, ast.ClassDef) else home
        found |= {f"{prefix}::{each.name}" for each in inside if isinstance(each, ast.FunctionDef)}
    return found
