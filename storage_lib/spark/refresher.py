"""``python -m storage_lib.spark.refresher``: keep materialized tables fresh, in one process.

It looks for new commits of the tables' sources and refreshes each table that lags behind, after the tables that it
reads. A table with a FRESHNESS is refreshed after half of it at the latest; one without as soon as a source changes.
Spark starts with the first refresh that DuckDB does not compute, and at once if the session's settings change values.
Each refresh and each error is a line of standard output in JSON. It ends with 0 on SIGTERM or SIGINT, after the refresh
that runs, and with 1 if a table that was named is not a materialized one, or Spark does not start, or stops. A launcher
(an Airflow operator) gives a specification, and reads the process's heartbeat file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.distribution import import_problem
from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.io.environment import Environment, system_environment
from storage_lib.progress.sink_state import SinkState
from storage_lib.schema.options.secret_text import hidden_in

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from storage_lib.materialized.plan.refresh_result import RefreshResult
    from storage_lib.materialized.service.fresh_tables import FreshTables
    from storage_lib.materialized.service.refresher_heartbeat import RefresherHeartbeat
    from storage_lib.materialized.service.refresher_spec import RefresherSpec
    from storage_lib.spark.engine.refresh_on_demand import RefreshOnDemand, SparkStartError
    from storage_lib.spark.engine.session_settings import unusual_configuration
    from storage_lib.spark.runtime.spark_java import REMEDY, java_problem, java_version
    from storage_lib.spark.runtime.spark_session import session
except ImportError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(import_problem("python -m storage_lib.spark.refresher", error, "spark", "sql")) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep tables fresh until the process is asked to stop; return its exit code."""
    given = _parser().parse_args(arguments)
    environment = system_environment()
    heartbeat, stop_path = None, None
    try:
        if given.spec is not None:
            spec = RefresherSpec.from_json(environment.file_io.read_bytes(given.spec).decode())
            heartbeat, stop_path = RefresherHeartbeat(spec.heartbeat_path, environment), spec.stop_path
            job = _Job.of_spec(spec)
        else:
            job = _Job.of_arguments(given)
    except StorageError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        with nullcontext() if heartbeat is None else heartbeat.beating(job.text_of):
            _run(job, environment, _Stop(stop, stop_path, environment), heartbeat)
    except (SparkStartError, StorageError, PySparkException) as error:
        sys.stderr.write(f"{job.text_of(error)}\n")
        return 1
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What to refresh, with what. ``secrets`` are options that no output may contain."""

    warehouse: str
    options: Mapping[str, str]
    secrets: Mapping[str, str]
    tables: Sequence[str]
    poll_seconds: float
    master: str | None
    conf: Mapping[str, str]

    @classmethod
    def of_arguments(cls, given: argparse.Namespace) -> _Job:
        return cls(
            warehouse=given.warehouse,
            options=dict(map(_pair, given.option)),
            secrets=_secrets(dict(map(_pair, given.secret_option))),
            tables=given.table,
            poll_seconds=given.poll_seconds,
            master=given.master,
            conf=dict(map(_pair, given.conf)),
        )

    @classmethod
    def of_spec(cls, spec: RefresherSpec) -> _Job:
        return cls(
            warehouse=spec.warehouse,
            options=spec.catalog_options,
            secrets=_secrets(spec.secret_options),
            tables=spec.tables,
            poll_seconds=spec.poll_seconds,
            master=spec.master,
            conf=spec.spark_conf,
        )

    def text_of(self, error: Exception) -> str:
        cause = error.__cause__ if isinstance(error, SparkStartError) else error
        return hidden_in(f"{type(cause).__name__}: {cause}", self.secrets.values())


def _secrets(variables: Mapping[str, str]) -> dict[str, str]:
    missing = next((each for each in variables.values() if each not in os.environ), None)
    if missing is not None:
        message = f"environment variable {missing}, which should hold a secret option, is not set"
        raise InvalidInputError(message)
    return {option: os.environ[variable] for option, variable in variables.items()}


class _Stop(threading.Event):
    """Set by a signal, or once the stop file exists."""

    def __init__(self, signalled: threading.Event, path: str | None, environment: Environment) -> None:
        super().__init__()
        self._signalled = signalled
        self._path = path
        self._environment = environment

    def is_set(self) -> bool:
        return self._signalled.is_set() or (self._path is not None and self._environment.file_io.exists(self._path))

    def wait(self, timeout: float | None = None) -> bool:
        return self._signalled.wait(timeout) or self.is_set()


def _run(job: _Job, environment: Environment, stop: threading.Event, heartbeat: RefresherHeartbeat | None) -> None:
    catalog = open_catalog(job.warehouse, {**job.options, **job.secrets})
    for name in job.tables:
        catalog.load_table(name)
    refreshes = RefreshOnDemand(lambda: _spark(job))
    if unusual_configuration(job.master, job.conf) is not None:
        refreshes.wait_for_spark()
    elif java_version() is None:
        # Raised now, not hours later when a refresh needs Spark.
        message = f"Spark will not start: {java_problem()}. {REMEDY}"
        raise InvalidInputError(message)
    if heartbeat is not None:
        heartbeat.say(state=SinkState.RUNNING)

    def report(name: str, outcome: RefreshResult | Exception) -> None:
        line = line_of(name, outcome, job.secrets)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        if heartbeat is not None:
            heartbeat.note(name, json.loads(line))

    tables = FreshTables(
        refreshes,
        catalog,
        environment.clock,
        report=report,
        names=tuple(job.tables) or None,
        query_errors=(PySparkException,),
    )
    tables.run(stop, poll_seconds=job.poll_seconds)


def _spark(job: _Job) -> SparkSession:
    spark = session("refresher", master=job.master, conf=job.conf)
    spark.sparkContext.setLogLevel("WARN")
    return spark


def line_of(name: str, outcome: RefreshResult | Exception, secrets: Mapping[str, str]) -> str:
    """Return the line of output about one refresh."""
    if isinstance(outcome, Exception):
        text = hidden_in(f"{type(outcome).__name__}: {outcome}", secrets.values())
        return json.dumps({"table": name, "error": text})
    facts = {
        "table": name,
        "mode": outcome.mode,
        "reason": outcome.reason,
        "rows_read": dict(outcome.rows_read),
        "rows_written": outcome.rows_written,
        "seconds": round(outcome.seconds, 3),
        "snapshot": outcome.snapshot_id,
    }
    return json.dumps(facts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m storage_lib.spark.refresher", description="Keep materialized tables fresh."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--warehouse", help="location of the catalog")
    what.add_argument("--spec", help="path of a JSON file (RefresherSpec) in place of all other options")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="option of the catalog")
    parser.add_argument(
        "--secret-option", action="append", default=[], metavar="KEY=VARIABLE", help="option from the environment"
    )
    parser.add_argument(
        "--table", action="append", default=[], metavar="DB.TABLE", help="a table; default: all, also later ones"
    )
    parser.add_argument("--poll-seconds", type=float, default=1.0, help="pause between two looks at the sources")
    parser.add_argument("--master", help="Spark master; default: local")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="setting of Spark")
    return parser


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        message = f"{text!r} is not KEY=VALUE"
        raise SystemExit(message)
    return key, value


if __name__ == "__main__":
    sys.exit(main())
