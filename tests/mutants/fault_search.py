"""Runs the tests that have to find a fault, and tells whether one of them did."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.mutants.copied_tree import CopiedTree
from tests.mutants.first_failure import FILE_VARIABLE
from tests.mutants.planted_fault import PlantedFault, StaleFaultError

SECONDS_MAX = 300
"""Time limit of one test. A fault that makes a test wait forever is not found, but has to be found by an assertion."""

_FAILED, _PASSED = 1, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Result for one fault: ``found_by`` is the id of the test that failed; else ``reason`` tells why none did."""

    fault: PlantedFault
    seconds: float
    found_by: str | None = None
    reason: str = ""
    output: str = ""

    def __str__(self) -> str:
        result = f"found by {self.found_by}" if self.found_by else f"NOT FOUND: {self.reason}"
        return f"{self.fault.name} ({self.seconds:.0f} s): {result}"


def search(tree: CopiedTree, fault: PlantedFault) -> Search:
    """Plant the fault and run its tests up to the first that fails."""
    started = time.monotonic()
    try:
        with tree.planted(fault):
            code, seen, output = _run(tree, fault.tests, "-x")
    except StaleFaultError as error:
        return Search(fault=fault, seconds=time.monotonic() - started, reason=str(error))
    found_by, reason = verdict(code, seen)
    return Search(fault=fault, seconds=time.monotonic() - started, found_by=found_by, reason=reason, output=output)


def check_without_faults(tree: CopiedTree, searches: Iterable[Search]) -> str | None:
    """Run the tests that found faults on the code as it is; return the output if one of them does not pass."""
    tests = sorted({each.found_by for each in searches if each.found_by is not None})
    if not tests:
        return None
    code, _, output = _run(tree, tests)
    return None if code == _PASSED else output


def verdict(code: int, seen: Mapping[str, str | None]) -> tuple[str | None, str]:
    """Return the id of the test that found a fault, or None and the reason.

    ``code`` is pytest's exit code, ``seen`` what ``first_failure`` noted.
    """
    test = seen.get("test")
    if test is not None and seen["doubt"] is not None:
        return None, f"{test} is no proof: {seen['doubt']}"
    if test is not None and code == _FAILED:
        return test, ""
    if code == _PASSED:
        return None, "its tests pass; a promise of the product is not tested, write the test"
    return None, f"pytest ended with {code} before a test had failed; `make test` may not run the tests that are named"


def _run(tree: CopiedTree, tests: Iterable[str], *options: str) -> tuple[int, dict[str, str | None], str]:
    """Run tests as ``make test`` selects them; return pytest's exit code, the first failure, and its output."""
    noted = tree.root / "first_failure.json"
    noted.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.first_failure"]
    done = subprocess.run(
        [*command, "--tb=short", f"--timeout={SECONDS_MAX}", *options, *tests],
        cwd=tree.root,
        env={**tree.environment, FILE_VARIABLE: str(noted)},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seen = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    return done.returncode, seen, done.stdout
