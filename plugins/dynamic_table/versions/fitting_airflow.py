"""Which versions of Airflow the plugin runs on, and whether the installed one is among them.

A version is named here if the plugin can be used with it. It is on trial until it is released and all tests of the
plugin and of the DAGs have passed on it (`make airflow`, docs/versions.md). Its patch releases count as the same
version. Imports nothing of Airflow, which would create its home directory.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

__all__ = ["AIRFLOW_VERSIONS", "installed_release", "installed_version", "refuse_unfitting_airflow"]

AIRFLOW_VERSIONS = ((3, 1), (3, 2), (3, 3), (3, 4))
"""The versions of Airflow, oldest first. The extra ``airflow`` has only those that are no longer on trial."""


def refuse_unfitting_airflow() -> None:
    """Raise ``ImportError`` if the installed Airflow is not one that the plugin runs on."""
    if installed_version() in AIRFLOW_VERSIONS:
        return
    from storage_lib.distribution import install_command

    found = find_spec("airflow")
    places = list(found.submodule_search_locations or ()) if found else []
    oldest, newest = (".".join(map(str, each)) for each in (AIRFLOW_VERSIONS[0], AIRFLOW_VERSIONS[-1]))
    message = (
        f"Airflow {installed_release()} is installed, in {', '.join(places)}; dynamic tables need {oldest} to "
        f"{newest}: {install_command('airflow')}"
    )
    raise ImportError(message, name="airflow")


def installed_version() -> tuple[int, int]:
    """Return the first two numbers of the installed version; of a pre-release, those of its release."""
    found = re.match(r"(\d+)\.(\d+)", installed_release())
    return (0, 0) if found is None else (int(found[1]), int(found[2]))


@cache
def installed_release() -> str:
    """Return the version of Airflow's core; of a package ``airflow`` without it, such as a provider alone, a remark."""
    for distribution in ("apache-airflow-core", "apache-airflow"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "without its core"
