"""What tests of all folders share: the session's broker, marks that follow from fixtures, a word when setup is missing.

Builders live in ``tests/support``, other fixtures near their use.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from local_kafka import JARS, LocalKafka

# A test that asks for the fixture on the left carries the marks on the right, whoever wrote it.
MARKS_OF_FIXTURES = {
    "kafka": ("kafka", "integration"),
    "spark": ("spark", "integration"),
}
PAIMON_PYTHON = Path(__file__).parents[1] / ".local" / "paimon" / "bin" / "python"

# Chance is seeded: the same examples at every run, everywhere.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


def pytest_report_header() -> list[str]:
    """Say before the first test what is not set up, and how to get it."""
    missing = [what for what, place in (("Kafka", JARS), ("pypaimon", PAIMON_PYTHON)) if not place.exists()]
    return (
        [f"NOT SET UP: {', '.join(missing)}; the tests that need it are skipped. Run `make setup`."] if missing else []
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a process of its own, so that `make test FAST=1` can leave it out."""
    for item in items:
        for fixture in MARKS_OF_FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            for mark in MARKS_OF_FIXTURES[fixture]:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """One real broker for the whole session, started by the first test that asks; it ends with pytest in any case.

    Topics are shared: name yours after the test. Who wants to kill a broker starts one of their own.
    """
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    with LocalKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
