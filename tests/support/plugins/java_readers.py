"""Other readers and writers of our files, in Java: Paimon's core and two releases of Flink.

Imported when a test asks for one: they need Arrow, and Paimon's core jars of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.flink import Flink
    from tests.support.paimon_core import PaimonCore


@pytest.fixture(scope="session")
def paimon_core() -> Iterator[PaimonCore]:
    """Paimon's Java core, one JVM for the whole session, started by the first test that uses it."""
    from tests.support.paimon_core import PaimonCore

    with PaimonCore() as core:
        yield core


@pytest.fixture(scope="session")
def flink_1_20() -> Iterator[Flink]:
    """Flink 1.20 with Paimon's connector, one JVM for the whole session."""
    from tests.support.flink import Flink

    with Flink("1.20") as flink:
        yield flink


@pytest.fixture(scope="session")
def flink_2_0() -> Iterator[Flink]:
    """Flink 2.0 with Paimon's connector, one JVM for the whole session."""
    from tests.support.flink import Flink

    with Flink("2.0") as flink:
        yield flink
