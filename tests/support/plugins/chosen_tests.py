"""Which tests a run takes: marks derived from fixtures, deep tests and their slices, drills."""

from __future__ import annotations

import pytest

from tests.support.deep_tests import SLICES, is_selected, slice_of

# A test that uses the fixture on the left gets the marks on the right.
MARKS_OF_FIXTURES = {
    "debezium": ("debezium", "integration"),
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
    parser.addoption(
        "--with-slice",
        type=int,
        choices=range(1, SLICES + 1),
        help=f"also run one of {SLICES} slices of the tests that only `make deep` runs",
    )
    parser.addoption(
        "--part", type=int, choices=range(1, SLICES + 1), help=f"run one of {SLICES} parts of the chosen tests"
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
    if config.getoption("part") not in {None, slice_of(item.nodeid)}:
        return False
    if item.get_closest_marker("drill"):
        return "drill" in config.getoption("markexpr")
    return is_selected(
        item.nodeid,
        is_deep=item.get_closest_marker("deep") is not None,
        deep=config.getoption("deep") or "deep" in config.getoption("markexpr"),
        chosen=config.getoption("slice"),
        added=config.getoption("with_slice"),
    )


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> None:
    """Refuse a server in a run of tests that start no process: the test asks for it as it runs, and lacks the mark."""
    if fixturedef.argname in MARKS_OF_FIXTURES and "not integration" in request.config.getoption("markexpr"):
        pytest.fail(f"this test starts {fixturedef.argname}: say so, @pytest.mark.usefixtures({fixturedef.argname!r})")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let a run succeed whose slice or part has no test of the chosen folders."""
    chosen = session.config.getoption("slice") or session.config.getoption("part")
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and chosen:
        session.exitstatus = pytest.ExitCode.OK
