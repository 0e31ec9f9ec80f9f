"""Plugin of pytest that writes the first failure, and the number of tests that ran, to a file as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

FILE_VARIABLE = "FIRST_FAILURE_FILE"
# A change that the code does not survive is no fault that a test would have to find.
_UNUSABLE = (ImportError, SyntaxError, NameError)

_seen: dict[str, Any] = {"count": 0}


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Let random tests end with the first example that fails: making it small takes minutes, and nobody reads it."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("first failure", settings(), phases=phases, report_multiple_bugs=False)
    settings.load_profile("first failure")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Note the test if it has failed, and why if that is no proof."""
    report = yield
    if call.when == "call":
        _seen["count"] += 1
    if report.failed and "test" not in _seen:
        _seen["test"] = item.nodeid
        _seen["doubt"] = doubt_of(call.when, None if call.excinfo is None else call.excinfo.value)
    return report


def doubt_of(when: str, error: BaseException | None) -> str | None:
    """Return why a failure does not prove that a test has found a fault; None if it does."""
    if when != "call":
        return f"its {when} failed: {error!r}"
    if isinstance(error, _UNUSABLE):
        return f"it failed with {error!r}"
    if str(error).startswith("Timeout"):
        return "it ran into the time limit"
    return None


def pytest_sessionfinish() -> None:
    """Write the file."""
    Path(os.environ[FILE_VARIABLE]).write_text(json.dumps(_seen), encoding="utf-8")
