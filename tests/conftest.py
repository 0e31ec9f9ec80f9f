"""The plugins that all folders share, each for one subject; where temporary files lie, and that chance is seeded.

A plugin imports a server's client, or a package of an extra, only when a test asks for it: an environment that has only
the core collects and runs what belongs to it. Builders are in ``tests/support``, other fixtures near their use.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from tests.support.memory_disk import memory_disk

pytest_plugins = [
    f"tests.support.plugins.{name}"
    for name in (
        "catalog_servers",
        "chosen_tests",
        "java_readers",
        "kafka_broker",
        "setup_report",
        "spark_sessions",
        "storage_servers",
        "work_distribution",
    )
]

# Default root of `tmp_path`; `--basetemp` overrides it.
if in_memory := memory_disk():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(in_memory))

# Randomness is seeded: the same examples at every run, everywhere. Deadlines are off, since durations depend on the
# machine's load.
settings.register_profile("seeded", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("seeded")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites expectations stored in text files, those of ``tests/support/sql_cases.py``."""
    parser.addoption(
        "--rewrite-sql-cases", action="store_true", help="write what the cases in tests/sql/cases give now"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the main module of an xdist worker; pyspark takes an unnamed one for a doctest, and exits."""
    if hasattr(config, "workerinput"):
        sys.modules["__main__"].__spec__ = find_spec("xdist.remote")
