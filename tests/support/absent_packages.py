"""Programs that need a package of an extra, run where it is absent, broken, or too old, and how each of them ends.

``python -m tests.support.absent_packages`` runs all of them and prints their endings as JSON. Each runs in a child
process of its own, which has imported nothing of the library yet.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib import DynamicTable

BROKEN = "libexample.so.1: cannot open shared object file"
_ROLE = "arn:aws:iam::000000000000:role/tables"
_OLD = ("kafka", "obstore", "pyspark", "sqlglot")
"""Packages that are also tried without any name that this library imports, as an old version lacks some."""


class _Package(Loader):
    """A package that can't be imported, or one without any of the names that it should have."""

    def __init__(self, state: str) -> None:
        self._state = state

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if self._state == "broken":
            raise ImportError(BROKEN)


class _Finder(MetaPathFinder):
    """Hides the package from the other finders."""

    def __init__(self, package: str, state: str, others: Sequence[object]) -> None:
        self._package = package
        self._state = state
        self._others = others

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname == self._package and self._state != "absent":
            return ModuleSpec(fullname, _Package(self._state), is_package=True)
        if fullname.partition(".")[0] == self._package:
            return None
        for other in self._others:
            found: ModuleSpec | None = other.find_spec(fullname, path, target)  # type: ignore[attr-defined]
            if found is not None:
                return found
        return None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        return MetadataPathFinder.find_distributions(context)


def _airflow() -> None:
    import dynamic_table.hook  # noqa: F401


def _checked_rows() -> None:
    import pyarrow as pa

    from dynamic_table.quality.data_quality import check_expectations

    expectation = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}
    check_expectations(pa.table({"id": [1]}), [expectation])


def _table(**options: str) -> DynamicTable:
    import pyarrow as pa

    from storage_lib import open_catalog

    return open_catalog(tempfile.mkdtemp(), options).create_table("shop.orders", pa.schema([("id", pa.int64())]))


def _duckdb() -> None:
    _table().to_duckdb()


def _verified(against: str | None = None, query: str | None = None) -> Callable[[], None]:
    def run() -> None:
        from storage_lib import verify

        verify(_table(), against, query=query)

    return run


def _delta() -> None:
    from storage_lib.sql.state.session_catalogs import open_session_catalog

    open_session_catalog("lake", {"type": "delta", "warehouse": tempfile.gettempdir()})


def _iceberg() -> None:
    from storage_lib.sql.state.session_catalogs import open_session_catalog

    open_session_catalog("lake", {"type": "iceberg", "warehouse": tempfile.gettempdir()})


def _pandas() -> None:
    _table().to_pandas()


def _filter() -> None:
    _table().to_arrow(filter="id = 1")


def _log() -> None:
    _table(**{"log.system": "kafka", "log.kafka.bootstrap.servers": "127.0.0.1:1"})


def _topic() -> None:
    import pyarrow as pa

    from storage_lib.log_store.external.external_topic import ExternalTopic

    options = {"log.kafka.bootstrap.servers": "127.0.0.1:1", "topic": "orders"}
    ExternalTopic.parse(options, pa.schema([("id", pa.int64())])).log()


def _registry() -> None:
    from storage_lib.log_store.kafka.log_codecs import registry_of

    registry_of("orders", {})


def _warehouse(url: str, **options: str) -> Callable[[], None]:
    def run() -> None:
        from storage_lib import open_catalog

        open_catalog(url, options)

    return run


def _spark() -> None:
    from storage_lib.spark import session  # noqa: F401


def _sql() -> None:
    from storage_lib.sql import Session  # noqa: F401


def _parse() -> None:
    from storage_lib.sql import parse  # noqa: F401


def _names(package: str) -> Callable[[], None]:
    """Use all public names of a package; the last error that names an extra is the answer, or the first other one."""

    def run() -> None:
        module = import_module(package)
        refusal = None
        for name in module.__all__:
            try:
                getattr(module, name)
            except ImportError as error:
                refusal = error
                if "pip install" not in str(error):
                    break
        if refusal is not None:
            raise refusal

    return run


def _process(module: str) -> Callable[[], None]:
    def run() -> None:
        sys.argv = [module]
        runpy.run_module(module, run_name="__main__")

    return run


def _command(*arguments: str) -> Callable[[], None]:
    def run() -> None:
        from storage_lib.cli.app import app

        app([*arguments])

    return run


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


PROGRAMS: tuple[tuple[str, str, Callable[[], None], str], ...] = (
    ("adbc_driver_postgresql", "a comparison with PostgreSQL", _verified("postgresql://127.0.0.1:1/shop"), "postgres"),
    ("duckdb", "a comparison with a query", _verified(query="SELECT 1 AS id"), "duckdb"),
    # package, what needs it, the program, the extras that the error has to name
    ("airflow", "the operators", _airflow, "airflow"),
    ("botocore", "credentials for clients", _command("-w", "s3://lake/warehouse", "serve", "--role", _ROLE), "sts"),
    ("deltalake", "a catalog of Delta Lake", _delta, "delta"),
    ("pyiceberg", "a catalog of Iceberg", _iceberg, "iceberg"),
    ("duckdb", "to_duckdb", _duckdb, "duckdb"),
    ("fastapi", "the server", _command("-w", tempfile.gettempdir(), "serve"), "serve"),
    ("great_expectations", "a check of rows", _checked_rows, "quality"),
    ("hdfs_native", "a warehouse in HDFS", _warehouse("hdfs://name/lake"), "hdfs"),
    ("httpx", "a topic in Avro", _registry, "registry"),
    ("kafka", "a table's log", _log, "kafka"),
    ("kafka", "an external topic", _topic, "kafka"),
    ("lark", "a parsed statement", _parse, "spark,sql"),
    ("lz4", "a table's log", _log, "kafka"),
    ("obstore", "a warehouse in S3", _warehouse("s3://lake"), "s3"),
    ("packaging", "a check of the environment", _command("doctor", "--environment"), "cli"),
    ("pandas", "to_pandas", _pandas, "pandas"),
    ("prompt_toolkit", "the shell", _command("-w", tempfile.gettempdir(), "sql"), "cli"),
    ("psycopg", "a catalog", _warehouse("lake", metastore="sql", uri="postgresql://127.0.0.1:1/c"), "sql-catalog"),
    ("pymetastore", "a catalog", _warehouse("lake", metastore="hive", uri="thrift://127.0.0.1:1"), "hive"),
    ("pyspark", "a data frame", _spark, "spark"),
    ("py4j", "the names of the connector", _names("storage_lib.spark"), "spark"),
    ("pyspark", "a session", _sql, "spark,sql"),
    ("pyspark", "the names of the connector", _names("storage_lib.spark"), "spark"),
    ("pyspark", "the refresher", _process("storage_lib.spark.refresher"), "spark,sql"),
    ("pyspark", "a stream of its own", _process("storage_lib.spark.streaming_sink"), "spark"),
    ("rich", "the command line", _command("--version"), "cli"),
    ("sqlalchemy", "a catalog", _warehouse("lake", metastore="sql", uri="sqlite://"), "sql-catalog"),
    ("sqlglot", "a filter", _filter, "sql"),
    ("sqlglot", "a session", _sql, "spark,sql"),
    ("sqlglot", "the names of SQL", _names("storage_lib.sql"), "spark,sql"),
    ("sqlglot", "the refresher", _process("storage_lib.spark.refresher"), "spark,sql"),
    ("thrift", "a catalog", _warehouse("lake", metastore="hive", uri="thrift://127.0.0.1:1"), "hive"),
    ("typer", "the command line", _command("--version"), "cli"),
    ("uvicorn", "the server", _command("-w", tempfile.gettempdir(), "serve"), "serve"),
)


def _ending(package: str, state: str, program: Callable[[], None]) -> dict[str, str]:
    """Return the error and its causes, each as one text; the errors of commands are what they print."""
    for name in [each for each in sys.modules if each.partition(".")[0] == package]:
        del sys.modules[name]
    sys.meta_path[:] = [_Finder(package, state, tuple(sys.meta_path))]
    sys.stdin = _Terminal()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
            program()
    except SystemExit as error:
        return {"error": f"{error} {printed.getvalue()}", "all": f"{traceback.format_exc()} {printed.getvalue()}"}
    except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
        return {"error": f"{type(error).__name__}: {error}", "all": traceback.format_exc()}
    return {"error": "", "all": ""}


def _in_child(package: str, state: str, program: Callable[[], None]) -> dict[str, str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as answer:
            json.dump(_ending(package, state, program), answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        ending: dict[str, str] = json.load(answer)
    os.waitpid(child, 0)
    return ending


def main() -> None:
    """Run each program in each state."""
    import storage_lib.catalog.open_catalog  # noqa: F401  once for all: it needs no extra

    endings = [
        {"package": package, "what": what, "extras": extras, "state": state} | _in_child(package, state, program)
        for package, what, program, extras in PROGRAMS
        for state in ("absent", "broken", *(("old",) if package in _OLD else ()))
    ]
    json.dump(endings, sys.stdout)


if __name__ == "__main__":
    main()
