"""Which tests a run takes: marks derived from fixtures, deep tests and their slices, drills."""

from __future__ import annotations

import pytest

from tests.support.deep_tests import SLICES, is_selected

# A test that uses the fixture on the left gets the marks on the right.
MARKS_OF_FIXTURES = {
    "flink_1_20": ("flink", "integration"),
    "flink_2_0": ("flink", "integration"),
    "hdfs": ("hdfs", "integration"),
    "kafka": ("kafka", "integration"),
    "metastore": ("metastore", "integration"),
    "paimon_core": ("paimon_core", "integration"),
    "postgres": ("postgres", "integration"),
    "registry": ("registry", "integration"),
    "s3": ("s3", "integration"),
    "spark": ("spark", "integration"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose tests."""
    parser.addoption("--deep", action="store_true", help="also run the tests that only `make deep` runs")
    parser.addoption(
        "--slice",
        type=int,
        choices=range(1, SLICES + 1),
        help=f"run one of {SLICES} slices of the tests that only `make deep` runs, and no others",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a separate process, so that `make test FAST=1` can leave them out.

    Drills are left out unless their mark is requested, deep tests unless an option is.
    """
    taken = {item for item in items if _is_taken(item, config)}
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = [item for item in items if item in taken]
    for item in items:
        for fixture in MARKS_OF_FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            for mark in MARKS_OF_FIXTURES[fixture]:
                item.add_marker(mark)


def _is_taken(item: pytest.Item, config: pytest.Config) -> bool:
    if item.get_closest_marker("drill"):
        return "drill" in config.getoption("markexpr")
    return is_selected(
        item.nodeid,
        is_deep=item.get_closest_marker("deep") is not None,
        deep=config.getoption("deep") or "deep" in config.getoption("markexpr"),
        chosen=config.getoption("slice"),
    )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let a run succeed whose slice has no test of the chosen folders."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("slice") is not None:
        session.exitstatus = pytest.ExitCode.OK
