"""The name under which this library is published, its version, and the packages that its extras install.

A package of an extra is imported when it is first needed. If that fails, the error either names the extra to install,
or, if the package is there but does not fit, its version, the one that is needed, and the cause.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires, version
from types import ModuleType

__all__ = [
    "DISTRIBUTION",
    "EXTRAS_OF_MODULES",
    "VERSION",
    "import_failure",
    "import_problem",
    "importing_for",
    "install_command",
]

DISTRIBUTION = "spark-dynamic-tables"
VERSION = "0.3.0"
"""``pyproject.toml`` takes the version of the package from this line."""

EXTRAS_OF_MODULES = {
    "adbc_driver_postgresql": ("postgres",),
    "airflow": ("airflow",),
    "botocore": ("sts",),
    "deltalake": ("delta",),
    "duckdb": ("duckdb",),
    "fastapi": ("serve", "airflow"),
    "great_expectations": ("quality",),
    "hdfs_native": ("hdfs",),
    "httpx": ("registry",),
    "kafka": ("kafka",),
    "lark": ("sql",),
    "lz4": ("kafka",),
    "obstore": ("s3",),
    "packaging": ("cli",),
    "pandas": ("pandas", "spark", "connect"),
    "prompt_toolkit": ("cli",),
    "psycopg": ("sql-catalog",),
    "pyiceberg": ("iceberg",),
    "pymetastore": ("hive",),
    "pyspark": ("spark", "connect"),
    "rich": ("cli",),
    "sqlalchemy": ("sql-catalog",),
    "sqlglot": ("sql",),
    "thrift": ("hive",),
    "typer": ("cli",),
    "uvicorn": ("serve",),
}
"""The extras that install each importable package; without a reason to prefer another one, errors name the first."""

_COMES_WITH = {"py4j": "pyspark", "starlette": "fastapi"}
"""Packages that we import, too, and the package that brings each."""

_NAMED_OTHERWISE = {"airflow": "apache-airflow", "kafka": "kafka-python"}


def install_command(*extras: str) -> str:
    """Return the command that installs the library with optional dependencies, for error messages."""
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def import_problem(what: str, error: Exception, *extras: str) -> str:
    """Describe why ``what`` could not import something.

    For a package of an extra that is not installed, this is the command that installs it: with ``extras`` if one of
    them has the package. Everything else is described by its cause, with the versions of the package found and needed.
    """
    missing = _missing_package(error)
    if missing is None:
        return f"{what} can't import what it needs{_misfit(error)}: {type(error).__name__}: {error}"
    having = EXTRAS_OF_MODULES[missing]
    return f"{what} needs {_project(missing)}: {install_command(*(extras if {*extras} & {*having} else having[:1]))}"


def import_failure(what: str, error: Exception, *extras: str) -> ImportError:
    """Return the error that ``import_problem`` describes. Raise it from ``error``.

    An ``AttributeError`` has to become an ``ImportError`` as well: from a module's ``__getattr__``, Python would report
    only that the name can't be imported.
    """
    failure = ImportError if _missing_package(error) is None else ModuleNotFoundError
    return failure(import_problem(what, error, *extras), name=getattr(error, "name", None))


@contextmanager
def importing_for(what: str, refusal: Callable[[str], Exception], *extras: str) -> Iterator[None]:
    """Turn an import that fails in the body into a refusal, made of the description by ``import_problem``."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise refusal(import_problem(what, error, *extras)) from error


def _missing_package(error: Exception) -> str | None:
    """Return the package of an extra that is not installed; None if the error has another cause."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package, _, submodule = error.name.partition(".")
    package = _COMES_WITH.get(package, package)
    # A missing submodule means that the package is there, in another version, unless its import has been blocked.
    is_missing = not submodule or sys.modules.get(package, error) is None
    return package if is_missing and package in EXTRAS_OF_MODULES else None


def _misfit(error: Exception) -> str:
    """Return the versions, found and needed, of the package at fault; empty if it is none that we need."""
    needed = _needed()
    for package in _packages_at_fault(error):
        project = _project(package)
        if project in needed:
            try:
                found = version(project)
            except PackageNotFoundError:
                continue
            return f" ({project} {found} is installed, {project}{needed[project]} is needed)"
    return ""


def _packages_at_fault(error: Exception) -> Iterator[str]:
    """Yield the top-level packages in which the error may have been raised, the likeliest first."""
    at_fault = getattr(error, "obj", None)
    if isinstance(at_fault, ModuleType):
        yield at_fault.__name__.partition(".")[0]
    yield (getattr(error, "name", None) or "").partition(".")[0]
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for frame in reversed(frames):
        yield str(frame.f_globals.get("__name__")).partition(".")[0]


def _needed() -> dict[str, str]:
    """Return our version constraints by the name of the project; empty where the library is not installed."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return {}
    needed: dict[str, str] = {}
    for line in lines:
        name, versions = re.match(r"([\w.-]+)(?:\[[^]]*])?\s*([^;]*)", line).groups()  # type: ignore[union-attr]
        needed.setdefault(name.lower().replace("_", "-"), versions.strip())
    return needed


def _project(module: str) -> str:
    """Return the name under which the package of a module is published."""
    return _NAMED_OTHERWISE.get(module, module.replace("_", "-"))
