"""The command ``sync``: makes tables follow all topics of a database, once or until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from storage_lib.cli.command_line_options import parsed_options
from storage_lib.cli.context import REFUSED, TRY_AGAIN, Settings, reporting, settings_of, without_secrets
from storage_lib.cli.output import print_rows
from storage_lib.errors import InvalidInputError, RetryableError

if TYPE_CHECKING:
    from storage_lib.sync.sync_database import SyncResult, TableSync


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reporting(sync))


def sync(
    context: typer.Context,
    into: Annotated[str, typer.Option(help="Database of the tables.")],
    topics: Annotated[list[str], typer.Option(help="Topics to read, such as 'shop.public.*'; may be repeated.")],
    format: Annotated[
        str, typer.Option("--format", "-f", help="debezium-json-schema, debezium-avro, ...")
    ] = "debezium-json-schema",
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", "-x", help="Topics to leave out; may be repeated.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Beginning of the tables' names.")] = "",
    suffix: Annotated[str, typer.Option(help="End of the tables' names.")] = "",
    rename: Annotated[
        list[str] | None,
        typer.Option(
            help="REGEX=NAME for the last part of a topic's name, such as 'orders_[0-9]+=orders'; repeatable."
        ),
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", help="Option of the source, such as source.on-reject=quarantine; repeatable."),
    ] = None,
    table_option: Annotated[
        list[str] | None, typer.Option("--table-option", help="Option of new tables, such as bucket=4; repeatable.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Tables that are read at once.")] = 4,
    every: Annotated[
        float | None, typer.Option(min=0.1, help="Repeat after this many seconds, until the command is stopped.")
    ] = None,
    *,
    merge_shards: Annotated[
        bool, typer.Option("--merge-shards", help="Read topics that get the same name into one table.")
    ] = False,
    skip_expired: Annotated[
        bool, typer.Option("--skip-expired", help="Continue after records that a topic no longer holds.")
    ] = False,
) -> None:
    """Make tables follow all topics of a database: create them, follow their columns, and ingest.

    Prints what was done for each table. The exit code is 0 if every topic was read up to its end, 75 if the topics that
    stopped may be read by another try, and 1 otherwise. With --every, topics that appear later are read as well, and
    Kafka may be away for a while; end the command at any time.
    """
    from storage_lib.sync.sync_database import sync_database

    settings = settings_of(context)
    run = partial(
        sync_database,
        settings.catalog(),
        topics,
        into=into,
        options={**settings.options, **parsed_options(with_ or (), "--with")},
        format=format,
        exclude=exclude or (),
        prefix=prefix,
        suffix=suffix,
        rename=dict(map(_renamed, rename or ())),
        merge_shards=merge_shards,
        table_options=parsed_options(table_option or (), "--table-option"),
        workers=workers,
        skip_expired=skip_expired,
    )
    result = _printed(settings, run)
    pause = threading.Event()
    while every is not None:
        pause.wait(every)
        try:
            result = _printed(settings, run)
        except RetryableError as error:
            typer.echo(f"{type(error).__name__}: {without_secrets(str(error))}", err=True)
    if result.errors:
        is_worth_trying = all(isinstance(each, RetryableError) for each in result.errors)
        raise typer.Exit(TRY_AGAIN if is_worth_trying else REFUSED)


def _printed(settings: Settings, run: Callable[[], SyncResult]) -> SyncResult:
    result = run()
    print_rows([_row(each) for each in result.tables], as_json=settings.as_json)
    return result


def _row(table: TableSync) -> dict[str, Any]:
    errors = [without_secrets(f"{topic}: {type(error).__name__}: {error}") for topic, error in table.errors.items()]
    state = "stopped" if errors else "waiting" if table.is_waiting else "created" if table.is_created else "followed"
    return {
        "table": table.table,
        "state": state,
        "rows": table.row_count,
        "rejected": table.rejected_count,
        "skipped": table.skipped_count,
        "schema_changes": table.schema_change_count,
        "lag": table.lag,
        "error": "; ".join(errors) or None,
    }


def _renamed(text: str) -> tuple[str, str]:
    expression, separator, name = text.rpartition("=")
    if not separator or not expression:
        message = f"--rename {text!r} is not REGEX=NAME, such as 'orders_[0-9]+=orders'"
        raise InvalidInputError(message)
    return expression, name
