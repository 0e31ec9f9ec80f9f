"""What the errors say where a package of an extra is absent, or does not fit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from storage_lib.distribution import EXTRAS_OF_MODULES, import_failure, import_problem
from tests.support.absent_packages import BROKEN
from tests.support.extras import is_installed, needs

CHECKOUT = Path(__file__).resolve().parents[1]
# Nothing of these is imported by name: they are for the tests, or Airflow imports them.
# The modules that are for an extra, as folders or single files below storage_lib.
OF_EXTRAS = (
    *(
        "catalog/hive",
        "catalog/sql",
        "cli",
        "duckdb",
        "hive",
        "iceberg/register",
        "io/remote",
        "lakes",
        "log_store/codec/schema_registry.py",
    ),
    *(
        "log_store/kafka",
        "materialized",
        "progress/rich_bar.py",
        "schema/filter/spark_text.py",
        "serve",
        "spark",
        "sql",
    ),
)
WITHOUT_MODULES = {"bench", "demo", "dev", "lineage"}
MODULES_OF_PROJECTS = {"apache-airflow": "airflow", "kafka-python": "kafka"}


@pytest.fixture(scope="module")
def endings() -> list[dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.absent_packages"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_an_error_names_the_extra_that_is_missing(endings: list[dict[str, str]]) -> None:
    """In an environment of the core, another package than the hidden one may be the first that is missing."""
    is_whole = all(map(is_installed, EXTRAS_OF_MODULES))
    absent = [each for each in endings if each["state"] == "absent"]
    offenders = {
        (each["package"], each["what"]): each["error"]
        for each in absent
        if f"pip install 'spark-dynamic-tables[{each['extras'] + ']' if is_whole else ''}" not in each["error"]
    }

    assert offenders == {}
    assert {each["package"] for each in absent} == {*EXTRAS_OF_MODULES, "py4j"}


def test_the_core_imports_no_package_of_an_extra() -> None:
    """Otherwise an environment of the core would skip the tests of the module, and report success."""
    files = (path.relative_to(CHECKOUT / "storage_lib") for path in (CHECKOUT / "storage_lib").rglob("*.py"))
    of_core = [path for path in files if not any(map(path.is_relative_to, OF_EXTRAS))]
    modules = [".".join(("storage_lib", *path.with_suffix("").parts)).removesuffix(".__init__") for path in of_core]
    program = (
        "import importlib, sys; "
        f"sys.modules.update(dict.fromkeys({sorted(EXTRAS_OF_MODULES)})); "
        f"[importlib.import_module(each) for each in {sorted(modules)}]"
    )

    ran = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert len(modules) > 300


@needs("pyspark", "sqlglot")
def test_the_names_of_spark_and_sql_need_no_other_extra() -> None:
    others = [each for each, extras in EXTRAS_OF_MODULES.items() if not {*extras} & {"spark", "sql"}]
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(others)})); import storage_lib.spark, storage_lib.sql; "
        "[getattr(module, name) for module in (storage_lib.spark, storage_lib.sql) for name in module.__all__]"
    )

    ran = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert "deltalake" in others


@needs(*EXTRAS_OF_MODULES)
def test_a_package_that_does_not_fit_shows_why(endings: list[dict[str, str]]) -> None:
    broken = [each for each in endings if each["state"] == "broken"]
    offenders = {
        (each["package"], each["what"]): each["error"]
        for each in broken
        if BROKEN not in each["error"] or "pip install" in each["error"]
    }

    assert offenders == {}


@needs(*EXTRAS_OF_MODULES)
def test_an_old_package_is_named_with_the_version_that_is_needed(endings: list[dict[str, str]]) -> None:
    old = [each for each in endings if each["state"] == "old"]
    offenders = {
        (each["package"], each["what"]): each["error"]
        for each in old
        if not re.search(r"\(\S+ \d[\w.]+ is installed, \S+[=>]=\d[\w.,<]+ is needed\)", each["error"])
    }

    assert old
    assert offenders == {}


def test_extras_are_known_by_their_modules() -> None:
    extras: dict[str, list[str]] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    listed: dict[str, set[str]] = {}
    for extra in extras.keys() - WITHOUT_MODULES:
        for line in extras[extra]:
            project = re.match(r"[\w-]+", line)[0]  # type: ignore[index]
            listed.setdefault(MODULES_OF_PROJECTS.get(project, project.replace("-", "_")), set()).add(extra)

    assert {module: set(having) for module, having in EXTRAS_OF_MODULES.items()} == listed


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (ModuleNotFoundError("No module named 'six'", name="six"), "ModuleNotFoundError: No module named 'six'"),
        (AttributeError("module 'x' has no attribute 'y'"), "AttributeError: module 'x' has no attribute 'y'"),
        pytest.param(
            ImportError("cannot import name 'y'", name="sqlglot.expressions"),
            r"\(sqlglot [\d.]+ is installed, sqlglot[<>=,\d.]*>=30\.12[<>=,\d.]* is needed\): ImportError",
            marks=needs("sqlglot"),
        ),
    ],
)
def test_other_causes_are_told_as_they_are(error: Any, wanted: str) -> None:
    failure = import_failure("a session", error, "sql")

    assert type(failure) is ImportError
    assert re.search(wanted, str(failure))
    assert str(failure).startswith("a session can't import what it needs")
    assert "pip install" not in str(failure)


def test_the_extras_of_the_caller_are_named_if_they_have_the_package() -> None:
    missing = ModuleNotFoundError("No module named 'pandas'", name="pandas")

    assert import_problem("a frame", missing).endswith("[pandas]'")
    assert import_problem("a session", missing, "spark", "sql").endswith("[spark,sql]'")
    assert import_problem("a log", missing, "kafka").endswith("[pandas]'")
