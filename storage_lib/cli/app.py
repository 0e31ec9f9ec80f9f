"""The command ``dynamic-table``, assembled from the modules of its subcommands.

dynamic-table --warehouse /tables tables
dynamic-table -w s3://bucket/tables describe shop.orders
dynamic-table read shop.orders --limit 10 --format csv -w /tables
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from storage_lib.distribution import VERSION, import_problem

try:
    import rich  # noqa: F401
    import typer
except ImportError as error:
    # The script, which imports this module, is installed even without the extra that its commands need.
    raise SystemExit(import_problem("dynamic-table", error)) from error

from storage_lib.cli import (
    airflow_commands,
    content_commands,
    inspect_commands,
    maintenance_commands,
    option_commands,
    sql_command,
)
from storage_lib.cli.command_line_options import (
    OPTIONS_FILE_VARIABLE,
    options_of_environment,
    options_of_file,
    parsed_options,
)
from storage_lib.cli.context import WAREHOUSE_VARIABLE, Settings, reporting, with_brokers
from storage_lib.cli.leading_options import GroupOfCommands
from storage_lib.cli.serving import serve_command
from storage_lib.cli.sources import rejected_command, sync_command, verify_command

app = typer.Typer(
    name="dynamic-table",
    cls=GroupOfCommands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001  as typer calls it
    if asked:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
@reporting
def main(
    context: typer.Context,
    warehouse: Annotated[
        str,
        typer.Option(
            "--warehouse", "-w", envvar=WAREHOUSE_VARIABLE, help="Path or URL of the directory that holds the tables."
        ),
    ] = "",
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="Catalog option, key=value; may be repeated.")
    ] = None,
    options_file: Annotated[
        Path | None,
        typer.Option(
            "--options-file",
            "-O",
            envvar=OPTIONS_FILE_VARIABLE,
            help="File of catalog options, including secrets: key=value lines, or JSON. Only you may have "
            "access to it.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    version: Annotated[  # noqa: ARG001  its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read, write, inspect and maintain dynamic tables."""
    of_file = {} if options_file is None else options_of_file(options_file)
    given = {**options_of_environment(os.environ), **of_file, **parsed_options(option or ())}
    context.obj = Settings(warehouse=warehouse, options=with_brokers(given), as_json=as_json)


inspect_commands.add_to(app)
content_commands.add_to(app)
sync_command.add_to(app)
verify_command.add_to(app)
maintenance_commands.add_to(app)
rejected_command.add_to(app)
sql_command.add_to(app)
serve_command.add_to(app)
option_commands.add_to(app)
airflow_commands.add_to(app)
