"""Which of pytest's processes runs a test, in which order, and how long each scope took."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.work_order import ScopeSeconds, rank_of, scope_of

_scope_seconds = ScopeSeconds()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep a file's tests in one of pytest's processes, and all tests that share a server as well.

    Replaces xdist's own groups: 3.8 can't distinguish those of pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return ByScope(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let slow tests run first, so that pytest's processes end at about the same time."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    marks = (item.get_closest_marker("integration"), item.get_closest_marker("airflow"))
    return rank_of(item.nodeid, starts_processes=any(marks))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the test's duration to that of its scope."""
    _scope_seconds.add(report.nodeid, report.duration)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report the longest scopes next to the slowest tests: their order is kept in ``tests/support/work_order.py``."""
    if config.option.durations:
        terminalreporter.section(f"slowest {config.option.durations} scopes")
        for line in _scope_seconds.lines(config.option.durations):
            terminalreporter.line(line)
