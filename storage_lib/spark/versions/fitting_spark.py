"""Which versions of Spark this library runs on, and whether those that are installed and running are among them.

A version is named here once tests of Spark, of SQL and of materialized tables have passed on it (`make spark`), and it
is on trial until all of them have. Its patch releases count as the same version.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from storage_lib.distribution import install_command
from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_VERSIONS = ((4, 0), (4, 1), (4, 2), (4, 3))
"""The versions of Spark, oldest first. ``pyproject.toml`` has the range of those that are not on trial."""
ON_TRIAL: tuple[tuple[int, int], ...] = ()
"""Versions of which a part of the tests has passed: ``pip`` does not install them, and a session on one says so."""

_LOGGER = logging.getLogger(__name__)

_SAME_FILES = ("pyspark", "pyspark-client")
"""Distributions that install the package ``pyspark``: the later one overwrites files of the other."""


def refuse_unfitting_pyspark() -> None:
    """Raise ``InvalidInputError`` if the installed pyspark is not one that this library runs on.

    Also for a package whose files come from two distributions of different versions.
    """
    problem = _problem()
    if problem is not None:
        raise InvalidInputError(problem)


@cache
def warn_of_trial() -> None:
    """Log, once in a process, that the installed version is on trial, if it is."""
    if minor_version(pyspark.__version__) in ON_TRIAL:
        _LOGGER.warning(
            "pyspark %s is installed: dynamic tables run on it on trial, not all of their tests have been run with it",
            pyspark.__version__,
        )


def refuse_unfitting_session(running: str) -> None:
    """Raise ``InvalidInputError`` if a classic session's Spark, of version ``running``, is not the one of pyspark.

    pyspark starts the Spark of ``SPARK_HOME``, if it is set, in place of its own.
    """
    if minor_version(running) != minor_version(pyspark.__version__):
        home = os.environ.get("SPARK_HOME")
        where = f"SPARK_HOME is {home}" if home else "the session was started by another Spark"
        message = (
            f"this session runs Spark {running}, but pyspark {pyspark.__version__} is installed; {where}. Both have to "
            f"be of one version, one of {_range()}"
        )
        raise InvalidInputError(message)


def refuse_unfitting_server(spark: SparkSession) -> None:
    """Raise ``InvalidInputError`` if a Spark Connect server is of a version that this library does not run on."""
    if minor_version(spark.version) not in SPARK_VERSIONS:
        message = f"the Spark Connect server runs Spark {spark.version}; dynamic tables need {_range()} there"
        raise InvalidInputError(message)


def minor_version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version, such as ``4.2.1`` or ``4.2.0.dev1``."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


def _problem() -> str | None:
    of_code = pyspark.__version__
    if minor_version(of_code) not in SPARK_VERSIONS:
        return (
            f"pyspark {of_code} is installed, in {Path(pyspark.__file__).parent}; dynamic tables need {_range()}: "
            f"{install_command('spark')}"
        )
    installed = _installed()
    # Where pyspark is on PYTHONPATH, as on a cluster, nothing says that it is installed.
    if any(found != of_code for found in installed.values()):
        named = " and ".join(f"{name} {found}" for name, found in installed.items())
        return (
            f"the package pyspark has the files of version {of_code}, but {named} "
            f"{'is' if len(installed) == 1 else 'are'} installed: distributions that share this package overwrite each "
            f"other's files. Run pip uninstall {' '.join(_SAME_FILES)}, then {install_command('spark')}"
        )
    return None


@cache
def _installed() -> dict[str, str]:
    """Return the versions of the distributions that install the package."""
    found = {}
    for name in _SAME_FILES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _range() -> str:
    oldest, newest = (".".join(map(str, each)) for each in (SPARK_VERSIONS[0], SPARK_VERSIONS[-1]))
    return f"{oldest} to {newest}"
