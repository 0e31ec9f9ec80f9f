"""A fault counts as found only if a test fails because of it, by what it asserts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants.copied_tree import CopiedTree
from tests.mutants.fault_search import search, verdict
from tests.mutants.first_failure import doubt_of
from tests.mutants.planted_fault import CHECKOUT, PlantedFault

FAULT = PlantedFault(
    protocol="lease",
    name="never-waits",
    promise="A writer waits.",
    file="storage_lib/__init__.py",
    before="WAITS = True",
    after="WAITS = False",
    tests=("tests/test_wait.py",),
)
TESTS = """
from storage_lib import WAITS

def test_a_writer_waits():
    assert WAITS

def test_nothing_else():
    pass
"""


def copied(home: Path) -> CopiedTree:
    """Return a copy of a small checkout, in which the runner's own modules are as in this one."""
    checkout = home / "checkout"
    for package in ("storage_lib", "plugins/dynamic_table", "tests/mutants"):
        (checkout / package).mkdir(parents=True)
        (checkout / package / "__init__.py").write_text("WAITS = True\n")
    plugin = "tests/mutants/first_failure.py"
    (checkout / plugin).write_text((CHECKOUT / plugin).read_text(encoding="utf-8"))
    (checkout / "tests" / "test_wait.py").write_text(TESTS)
    (checkout / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    subprocess.run(["git", "init", "-q", checkout], check=True)
    return CopiedTree(home / "copy", checkout)


@pytest.mark.integration
def test_the_test_that_fails_is_named_and_the_copy_is_as_before(tmp_path: Path) -> None:
    tree = copied(tmp_path)
    tree.check_imports()

    result = search(tree, FAULT)

    assert result.found_by == "tests/test_wait.py::test_a_writer_waits"
    assert "never-waits" in str(result)
    assert (tree.root / FAULT.file).read_text() == "WAITS = True\n"


@pytest.mark.integration
def test_code_that_is_imported_from_elsewhere_is_refused(tmp_path: Path) -> None:
    tree = copied(tmp_path)
    (tree.root / "storage_lib" / "__init__.py").unlink()

    with pytest.raises(RuntimeError, match="in which no fault is planted"):
        tree.check_imports()


@pytest.mark.parametrize(
    ("code", "seen", "words"),
    [
        (0, {}, "its tests pass"),
        (5, {}, "may not run the tests that are named"),
        (2, {}, "before a test had failed"),
        (1, {"test": "t.py::t", "doubt": "its setup failed"}, "t.py::t is no proof: its setup failed"),
    ],
)
def test_other_ends_are_no_proof(code: int, seen: dict[str, str | None], words: str) -> None:
    found_by, reason = verdict(code, seen)

    assert found_by is None
    assert words in reason


@pytest.mark.parametrize(
    ("when", "error", "words"),
    [
        ("setup", AssertionError("no server"), "setup failed"),
        ("call", ImportError("no module"), "ImportError"),
        ("call", NameError("no name"), "NameError"),
        ("call", TimeoutError("Timeout >300.0s"), "time limit"),
    ],
)
def test_a_failure_that_says_nothing_about_the_promise_is_doubted(when: str, error: Exception, words: str) -> None:
    assert words in (doubt_of(when, error) or "")


@pytest.mark.parametrize("error", [AssertionError("1 == 2"), pytest.fail.Exception("DID NOT RAISE"), KeyError("k")])
def test_a_failure_of_the_test_itself_is_a_proof(error: BaseException) -> None:
    assert doubt_of("call", error) is None
    assert verdict(1, {"test": "t.py::t", "doubt": None}) == ("t.py::t", "")
