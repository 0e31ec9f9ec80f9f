"""``dynamic-table``: the commands, put together.

dynamic-table --warehouse /tables tables
dynamic-table -w s3://bucket/tables describe shop.orders
dynamic-table -w /tables read shop.orders --limit 10 --format csv
"""

from __future__ import annotations

from typing import Annotated

import typer

from storage_lib.cli import care_commands, content_commands, look_commands, sql_command
from storage_lib.cli.context import WAREHOUSE_VARIABLE, Settings, parsed_options, reporting, with_brokers

app = typer.Typer(
    name="dynamic-table",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback()
@reporting
def main(
    context: typer.Context,
    warehouse: Annotated[
        str,
        typer.Option(
            "--warehouse", "-w", envvar=WAREHOUSE_VARIABLE, help="Below which the tables live: a path or URL."
        ),
    ] = "",
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option of the catalog, key=value; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON document.")] = False,
) -> None:
    """Look into dynamic tables and take care of them."""
    context.obj = Settings(warehouse=warehouse, options=with_brokers(parsed_options(option or ())), as_json=as_json)


look_commands.add_to(app)
content_commands.add_to(app)
care_commands.add_to(app)
sql_command.add_to(app)
