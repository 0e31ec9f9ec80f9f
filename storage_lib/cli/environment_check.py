"""Checks of ``doctor --environment``: whether Python, Java and the installed packages are of versions that fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from pathlib import Path

from storage_lib.cli.doctor import java_finding
from storage_lib.cli.finding import Finding
from storage_lib.distribution import DISTRIBUTION, VERSION, importing_for, install_command
from storage_lib.errors import InvalidInputError

with importing_for("dynamic-table doctor --environment", InvalidInputError, "cli"):
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

_OF_A_CHECKOUT = ("bench", "demo", "dev")
"""Extras for work on this library, which its users do not need."""


def examine_environment() -> list[Finding]:
    """Return what is installed: Python, this library, its core and each of its extras, Java, and Spark.

    A missing package is well, as nobody needs all extras; a package of another version than needed is not.
    """
    about = metadata(DISTRIBUTION)
    requirements = [Requirement(line) for line in about.get_all("Requires-Dist") or ()]
    extras = [extra for extra in about.get_all("Provides-Extra") or () if extra not in _OF_A_CHECKOUT]
    findings = [_python(about["Requires-Python"]), _library(about["Version"])]
    findings.append(_packages("core", [each for each in requirements if each.marker is None], DISTRIBUTION))
    for extra in extras:
        of_extra = [each for each in requirements if each.marker is not None and each.marker.evaluate({"extra": extra})]
        findings.append(_packages(extra, of_extra, install_command(extra)))
    return [*findings, java_finding(), *_pyspark(), *_spark_home()]


def _python(needed: str) -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    is_well = SpecifierSet(needed).contains(found, prereleases=True)
    text = f"{found} in {sys.prefix}" if is_well else f"{found} in {sys.prefix}; Python {needed} is needed"
    return Finding(what="python", is_well=is_well, text=text)


def _library(installed: str) -> Finding:
    if installed == VERSION:
        return Finding(what=DISTRIBUTION, is_well=True, text=VERSION)
    code = Path(__file__).parents[2]
    text = (
        f"{installed} is installed, but the code that runs, in {code}, is {VERSION}; remove one of them from Python's "
        "path, or install it again"
    )
    return Finding(what=DISTRIBUTION, is_well=False, text=text)


def _packages(what: str, requirements: Sequence[Requirement], command: str) -> Finding:
    found, missing, wrong = [], [], []
    for each in requirements:
        try:
            installed = version(each.name)
        except PackageNotFoundError:
            missing.append(each.name)
            continue
        missing = list(dict.fromkeys([*missing, *_missing_of_extras(each)]))
        fits = each.specifier.contains(installed, prereleases=True)
        found.append(f"{each.name} {installed}")
        wrong += [] if fits else [f"{each.name} {installed} is installed, {each.name}{each.specifier} is needed"]
    if wrong:
        return Finding(what=what, is_well=False, text=f"{'; '.join(wrong)}: {command}")
    if missing and what == "core":
        return Finding(what=what, is_well=False, text=f"{', '.join(missing)} not installed: pip install {command}")
    text = ", ".join(found)
    if missing:
        text += f"{'; ' if found else ''}{', '.join(missing)} not installed: {command}"
    return Finding(what=what, is_well=True, text=text)


def _missing_of_extras(requirement: Requirement) -> Iterator[str]:
    """Yield the missing packages that the extras of an installed one need, as in ``pyspark[connect]``."""
    for needed in map(Requirement, requires(requirement.name) or ()):
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            continue
        if any(needed.marker.evaluate({"extra": extra}) for extra in requirement.extras):
            try:
                version(needed.name)
            except PackageNotFoundError:
                yield needed.name


def _pyspark() -> Iterator[Finding]:
    """Yield whether pyspark's files are those of one version, and of one that this library runs on."""
    if find_spec("pyspark") is None:
        return
    from storage_lib.spark.versions.fitting_spark import refuse_unfitting_pyspark

    try:
        refuse_unfitting_pyspark()
    except InvalidInputError as error:
        yield Finding(what="pyspark", is_well=False, text=str(error))


def _spark_home() -> Iterator[Finding]:
    """Yield whether the Spark of ``SPARK_HOME``, which pyspark would start, is of pyspark's version."""
    home = os.environ.get("SPARK_HOME")
    if not home or find_spec("pyspark") is None:
        return
    from storage_lib.spark.versions.spark_home import spark_home_problem

    problem = spark_home_problem(home)
    yield Finding(what="SPARK_HOME", is_well=problem is None, text=problem or home)
