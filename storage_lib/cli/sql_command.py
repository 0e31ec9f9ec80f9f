"""The command ``dynamic-table sql``: statements from the command line, a file, a pipe or the interactive shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from storage_lib.cli.context import Settings, reporting, settings_of
from storage_lib.cli.output import note, waiting
from storage_lib.cli.spark_log import children_log_to
from storage_lib.cli.sql_output import ResultPrinter
from storage_lib.cli.statement_file import statements_in
from storage_lib.distribution import importing_for, install_command
from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib.sql import Session

_SHELL_ROWS_MAX = 1000
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reporting(sql))


def sql(
    context: typer.Context,
    statements: Annotated[
        list[str] | None, typer.Argument(help="SQL statements, as with -e.", show_default=False)
    ] = None,
    execute: Annotated[
        list[str] | None,
        typer.Option("--execute", "-e", help="SQL statements, separated by semicolons; may be repeated."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="File of SQL statements.")] = None,
    database: Annotated[str, typer.Option("--database", "-d", help="Database of names without one.")] = "default",
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    spark: Annotated[
        list[str] | None, typer.Option("--spark", help="Spark setting, key=value; may be repeated.")
    ] = None,
    spark_log: Annotated[Path | None, typer.Option(help="Write Spark's log to this file; default: discard it.")] = None,
) -> None:
    """Run SQL statements, or start a shell for them.

    Without statements and -f: a shell, or the statements that are piped in. The first error ends a script. A streaming
    INSERT runs in the background, and a script ends when its streams have ended or are interrupted; after SET
    'table.dml-sync' = 'true', the next statement waits until the INSERT has ended.
    """
    from storage_lib.cli.command_line_options import parsed_options

    _require_spark()
    settings = settings_of(context)
    catalog = settings.catalog(may_be_new=True)
    if not settings.warehouse_exists:
        # Not an error, since a script may begin with CREATE; but a mistyped path would look like an empty warehouse.
        note(f"warehouse {settings.warehouse} does not exist; the first CREATE TABLE or CREATE DATABASE makes it")
    conf = {**_QUIET, **parsed_options(spark or (), "--spark")}
    script = _script([*(statements or ()), *(execute or ())], file)
    if script is None:
        with importing_for("the shell of SQL statements", InvalidInputError):
            from storage_lib.cli.sql_shell import run_shell

        with _session(settings, database, master, conf, spark_log) as session:
            run_shell(
                session, catalog, ResultPrinter(as_json=settings.as_json, rows_max=_SHELL_ROWS_MAX, shows_time=True)
            )
        return
    from storage_lib.sql import parse, statements_of

    for each in statements_of(script):
        # Check before Spark starts, which takes seconds.
        parse(each.text, first_line=each.first_line)
    with _session(settings, database, master, conf, spark_log) as session:
        _run(session, script, ResultPrinter(as_json=settings.as_json))


def _require_spark() -> None:
    """Raise ``InvalidInputError`` if Spark or the SQL parser is missing, or Spark has a version that does not fit."""
    missing = [name for name in ("pyspark", "pandas", "lark", "sqlglot") if find_spec(name) is None]
    if missing:
        message = f"SQL needs {', '.join(missing)}: {install_command('spark', 'sql')}"
        raise InvalidInputError(message)
    from storage_lib.spark.versions.fitting_spark import refuse_unfitting_pyspark

    refuse_unfitting_pyspark()


def _script(execute: list[str], file: Path | None) -> str | None:
    """Return all given statements; None to start the interactive shell."""
    if execute and file is not None:
        message = "give statements, or a file of them with -f, not both"
        raise InvalidInputError(message)
    if execute:
        return ";\n".join(execute)
    if file is not None:
        return statements_in(file)
    return None if sys.stdin.isatty() else sys.stdin.read()


@contextmanager
def _session(
    settings: Settings, database: str, master: str, conf: dict[str, str], spark_log: Path | None
) -> Iterator[Session]:
    """Yield a session over its own Spark, which stops at the end."""
    from storage_lib.spark import session as spark_session
    from storage_lib.sql import Session

    with children_log_to(spark_log) as terminal, waiting("starting Spark", terminal):
        spark = spark_session("dynamic-table sql", master=master, conf=conf)
    try:
        with Session(spark, settings.catalog(may_be_new=True), database=database) as session:
            yield session
    finally:
        spark.stop()


def _run(session: Session, script: str, printer: ResultPrinter) -> None:
    streams = []
    try:
        try:
            for result in session.execute_script(script):
                printer.add(result)
                if result.stream is not None:
                    streams.append(result.stream)
        finally:
            printer.finish()
        running = sum(stream.isActive for stream in streams)
        if running:
            note(f"{running} stream{'' if running == 1 else 's'} running; interrupt to stop")
        try:
            for stream in streams:
                stream.awaitTermination()
        except KeyboardInterrupt:
            note("stopping")
    finally:
        for stream in streams:
            stream.stop()
