"""Commands that inspect tables and files without changing them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from storage_lib.cli.command_line_options import parsed_pairs
from storage_lib.cli.context import REFUSED, reporting, settings_of
from storage_lib.cli.output import note, print_fields, print_json, print_rows
from storage_lib.errors import InvalidInputError, NotFoundError

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="database.table", show_default=False)]
Partition = Annotated[
    list[str] | None, typer.Option("--partition", "-p", help="Partition, column=value; once per column.")
]

# The system table has more than forty columns; these fit a terminal.
_SNAPSHOTS_SHOWN = [
    "snapshot_id",
    "commit_kind",
    "commit_user",
    "commit_identifier",
    "commit_time",
    "delta_record_count",
    "total_record_count",
    "tracked",
    "watermark",
]
_FILES_SHOWN = ["partition", "bucket", "level", "record_count", "deleteRowCount", "file_size_in_bytes", "file_path"]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (tables, describe, health, snapshots, files, partitions, leases, dump, doctor):
        app.command()(reporting(command))


def tables(
    context: typer.Context, database: Annotated[str | None, typer.Argument(help="Only this database's.")] = None
) -> None:
    """List the tables."""
    from storage_lib.schema.options.nearest import did_you_mean

    settings = settings_of(context)
    catalog = settings.catalog()
    if database is not None and database not in (databases := catalog.list_databases()):
        message = f"database {database} does not exist{did_you_mean(database, databases)}"
        raise NotFoundError(message)
    names = catalog.list_tables(database)
    if settings.as_json:
        print_json(names)
    elif names:
        print_rows([{"table": name} for name in names], as_json=False)
    else:
        note("no tables; `dynamic-table create` or CREATE TABLE in `dynamic-table sql` creates one")


def describe(context: typer.Context, table: TableName, partition: Partition = None) -> None:
    """Describe a table or one partition: columns, keys, options, files and log."""
    settings = settings_of(context)
    wanted = parsed_pairs(partition or (), "--partition")
    print_fields(dict(settings.table(table).describe(wanted or None)), as_json=settings.as_json)


def health(context: typer.Context, table: TableName) -> None:
    """Show a table's health: newest snapshot, files, rows, bytes and sorted runs."""
    settings = settings_of(context)
    print_fields(asdict(settings.table(table).inspect.health()), as_json=settings.as_json)


def snapshots(
    context: typer.Context,
    table: TableName,
    limit: Annotated[int, typer.Option(min=1, help="Show this many of the newest.")] = 20,
) -> None:
    """List the newest snapshots, oldest first; --json prints every column of the system table."""
    settings = settings_of(context)
    found = settings.table(table).inspect.snapshots()
    if not settings.as_json:
        found = found.select(_SNAPSHOTS_SHOWN)
    print_rows(
        found.slice(max(0, found.num_rows - limit)).to_pylist(), as_json=settings.as_json, columns=found.column_names
    )


def files(
    context: typer.Context,
    table: TableName,
    snapshot: Annotated[int | None, typer.Option(help="Snapshot to inspect; default: the newest.")] = None,
) -> None:
    """List the data files; --json prints every column of the system table."""
    settings = settings_of(context)
    found = settings.table(table).inspect.files(snapshot)
    if not settings.as_json:
        found = found.select(_FILES_SHOWN)
    print_rows(found.to_pylist(), as_json=settings.as_json, columns=found.column_names)


def partitions(context: typer.Context, table: TableName) -> None:
    """List the partitions with their files, rows before merging, and bytes."""
    settings = settings_of(context)
    found = settings.table(table).inspect.partitions()
    print_rows(found.to_pylist(), as_json=settings.as_json, columns=found.column_names)


def leases(context: typer.Context, table: TableName) -> None:
    """Show which writer holds the lease."""
    settings = settings_of(context)
    opened = settings.table(table)
    print_fields(
        {"lease": opened.inspect.lease_number(), "held by": opened.inspect.lease_holder() or "nobody"},
        as_json=settings.as_json,
    )


def dump(
    file: Annotated[Path, typer.Argument(help="File to print: a snapshot, schema, manifest, tag, data file, ...")],
    rows: Annotated[int, typer.Option(min=0, help="Number of rows of a data file to print.")] = 10,
) -> None:
    """Print any file of a table as text."""
    from storage_lib.dump import dump as dumped
    from storage_lib.io.local.local_file_io import LocalFileIO

    for line in dumped(LocalFileIO(), str(file), rows=rows):
        typer.echo(line)


def doctor(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(help="Table to check; default: all tables.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every file completely and verify its checksum.")] = False,
    environment: Annotated[
        bool, typer.Option("--environment", help="Check only what is installed: Python, Java, and packages.")
    ] = False,
) -> None:
    """Check Java, Kafka, the warehouse and the tables; report problems and their remedies."""
    from storage_lib.cli.doctor import examine
    from storage_lib.cli.environment_check import examine_environment

    settings = settings_of(context)
    if environment and (deep or table is not None):
        message = "--environment checks what is installed, without tables; leave the table and --deep out"
        raise InvalidInputError(message)
    findings = examine_environment() if environment else examine(settings, table, deep=deep)
    print_rows([asdict(each) for each in findings], as_json=settings.as_json)
    wrong = sum(not each.is_well for each in findings)
    if wrong:
        note(f"{wrong} of {len(findings)} checks failed")
        raise typer.Exit(REFUSED)
