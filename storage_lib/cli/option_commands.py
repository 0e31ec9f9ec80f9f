"""The command ``dynamic-table options``: the reference of table options, for use without the documentation."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from storage_lib.cli.context import reporting, settings_of
from storage_lib.cli.output import print_rows


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reporting(options))


def options(
    context: typer.Context,
    prefix: Annotated[str, typer.Argument(help="Only options that begin so, or one option.", show_default=False)] = "",
) -> None:
    """List the options of tables with their defaults and meanings."""
    from storage_lib.schema.options.option_reference import describe_options

    print_rows([asdict(each) for each in describe_options(prefix)], as_json=settings_of(context).as_json, may_page=True)
