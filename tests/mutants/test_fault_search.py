"""A fault counts as found only if a test fails because of it, by what it asserts."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.copied_tree import CopiedTree
from tests.mutants.fault_search import check_without_faults, search
from tests.mutants.planted_fault import CHECKOUT, PlantedFault

pytestmark = pytest.mark.integration

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


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> CopiedTree:
    """A copy of a small checkout, in which the runner's own modules are as in this one."""
    checkout = tmp_path_factory.mktemp("checkout")
    for package in ("storage_lib", "plugins/dynamic_table", "tests/mutants"):
        (checkout / package).mkdir(parents=True)
        (checkout / package / "__init__.py").write_text("WAITS = True\n")
    plugin = "tests/mutants/first_failure.py"
    (checkout / plugin).write_text((CHECKOUT / plugin).read_text(encoding="utf-8"))
    (checkout / "tests" / "test_wait.py").write_text(TESTS)
    (checkout / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    subprocess.run(["git", "init", "-q", checkout], check=True)
    tree = CopiedTree(tmp_path_factory.mktemp("copies") / "0", checkout)
    tree.check_imports()
    return tree


def test_the_test_that_fails_is_named_and_the_copy_is_as_before(tree: CopiedTree) -> None:
    result = search(tree, FAULT)

    assert result.found_by == "tests/test_wait.py::test_a_writer_waits"
    assert "never-waits" in str(result)
    assert (tree.root / FAULT.file).read_text() == "WAITS = True\n"
    assert check_without_faults(tree, [FAULT]) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tests": ("tests/test_wait.py::test_nothing_else",)}, "its tests pass"),
        ({"after": "WAIT = True"}, "before a test had failed"),
        ({"tests": ("tests/test_wait.py::test_gone",)}, "may not run the tests that are named"),
        ({"before": "WAITS = 1"}, "occurs 0 times"),
    ],
)
def test_other_ends_are_no_proof(tree: CopiedTree, changes: dict[str, str], words: str) -> None:
    result = search(tree, replace(FAULT, **changes))  # type: ignore[arg-type]  # str or tuple

    assert result.found_by is None
    assert words in str(result)


def test_tests_that_fail_without_a_fault_are_reported(tree: CopiedTree) -> None:
    named_wrong = replace(FAULT, tests=("tests/test_wait.py::test_gone",))

    assert check_without_faults(tree, [named_wrong]) is not None


def test_imports_from_elsewhere_are_refused(tree: CopiedTree, tmp_path: Path) -> None:
    elsewhere: CopiedTree = object.__new__(CopiedTree)
    elsewhere.root = tmp_path
    for package in ("storage_lib", "plugins/dynamic_table"):
        (tmp_path / package).mkdir(parents=True)

    with pytest.raises((RuntimeError, subprocess.CalledProcessError)):
        elsewhere.check_imports()
