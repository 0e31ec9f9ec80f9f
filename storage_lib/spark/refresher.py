"""``python -m storage_lib.spark.refresher``: keep materialized tables fresh, in one Spark session.

It looks for new commits of the tables' sources and refreshes each table that lags behind, after the tables that it
reads. A table with a FRESHNESS is refreshed after half of it at the latest; one without as soon as a source changes.
Each refresh and each error is a line of standard output in JSON. It ends with 0 on SIGTERM or SIGINT, after the refresh
that runs, and with 1 if a table that was named is not a materialized one, or Spark stops.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import StorageError
from storage_lib.io.environment import system_environment
from storage_lib.schema.options.secret_text import hidden_in
from storage_lib.spark.materialized.fresh_tables import FreshTables
from storage_lib.spark.materialized.refresh_result import RefreshResult
from storage_lib.spark.runtime.spark_session import session


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep tables fresh until the process is asked to stop; return its exit code."""
    given = _parser().parse_args(arguments)
    secrets = {option: os.environ[variable] for option, variable in map(_pair, given.secret_option)}
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def report(name: str, outcome: RefreshResult | Exception) -> None:
        sys.stdout.write(f"{line_of(name, outcome, secrets)}\n")
        sys.stdout.flush()

    try:
        catalog = open_catalog(given.warehouse, {**dict(map(_pair, given.option)), **secrets})
        for name in given.table:
            catalog.load_table(name)
        spark = session("refresher", master=given.master, conf=dict(map(_pair, given.conf)))
        spark.sparkContext.setLogLevel("WARN")
        tables = FreshTables(
            spark, catalog, system_environment().clock, report=report, names=tuple(given.table) or None
        )
        tables.run(stop, poll_seconds=given.poll_seconds)
    except StorageError as error:
        sys.stderr.write(f"{hidden_in(f'{type(error).__name__}: {error}', secrets.values())}\n")
        return 1
    return 0


def line_of(name: str, outcome: RefreshResult | Exception, secrets: Mapping[str, str]) -> str:
    """Return the line of output about one refresh."""
    if isinstance(outcome, Exception):
        text = hidden_in(f"{type(outcome).__name__}: {outcome}", secrets.values())
        return json.dumps({"table": name, "error": text})
    told = {
        "table": name,
        "mode": outcome.mode,
        "reason": outcome.reason,
        "rows_read": dict(outcome.rows_read),
        "rows_written": outcome.rows_written,
        "seconds": round(outcome.seconds, 3),
        "snapshot": outcome.snapshot_id,
    }
    return json.dumps(told)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m storage_lib.spark.refresher", description="Keep materialized tables fresh."
    )
    parser.add_argument("--warehouse", required=True, help="location of the catalog")
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
