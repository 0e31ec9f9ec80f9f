"""Command that lists, shows, re-ingests and deletes the rejected records of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from storage_lib.cli.command_line_options import parsed_pairs
from storage_lib.cli.context import Settings, reporting, settings_of
from storage_lib.cli.inspect_commands import TableName
from storage_lib.cli.output import note, print_fields, print_rows
from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib import DynamicTable

_LISTED = ("id", "time", "source", "partition", "offset", "column", "reason")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reporting(rejected))


def rejected(
    context: typer.Context,
    table: TableName,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these records; shown whole.", show_default=False)
    ] = None,
    reingest: Annotated[bool, typer.Option("--reingest", help="Write the records into the table.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the records.")] = False,
    fix: Annotated[
        list[str] | None,
        typer.Option(help="column=expression: change JSON records first, 'name=left(name, 10)'; may be repeated."),
    ] = None,
    stored: Annotated[
        str, typer.Option(help="Records whose key has a row, which may be newer: keep, replace or discard.")
    ] = "keep",
    format: Annotated[
        str, typer.Option("--format", "-f", help="Format of the records: debezium-json, upsert-kafka, ...")
    ] = "debezium-json",
    source: Annotated[str | None, typer.Option(help="Only records of this source.")] = None,
    column: Annotated[str | None, typer.Option(help="Only records that did not fit this column.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="List this many of the newest.")] = 20,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """List records of sources that did not decode or fit; show, re-ingest or delete them."""
    settings = settings_of(context)
    if reingest and delete:
        message = "choose --reingest or --delete"
        raise InvalidInputError(message)
    if fix and not reingest:
        message = "--fix changes records that are written into the table: add --reingest"
        raise InvalidInputError(message)
    chosen: dict[str, Any] = {"ids": ids or None, "source": source, "column": column}
    opened = settings.table(table)
    if reingest:
        fixes = parsed_pairs(fix or (), "--fix")
        _reingest(settings, opened, format=format, fixes=fixes, on_stored=stored, **chosen)
    elif delete:
        count = opened.inspect.rejected_records(**chosen).num_rows
        if count and not yes:
            typer.confirm(f"Delete {count} rejected records of {table}?", abort=True, err=True)
        opened.maintenance.delete_rejected(**chosen)
        print_fields({"deleted": count}, as_json=settings.as_json)
    else:
        _show(settings, opened, limit=limit, **chosen)


def _reingest(settings: Settings, table: DynamicTable, **arguments: Any) -> None:
    from storage_lib import reingest as reingested

    result = reingested(table, options=settings.options, **arguments)
    snapshot = None if result.snapshot is None else result.snapshot.id
    fields = {
        "snapshot": snapshot,
        "records": result.record_count,
        "rows": result.row_count,
        "still rejected": len(result.remaining),
    }
    print_fields(fields, as_json=settings.as_json)
    for record, reason in result.remaining.items():
        note(f"{record} stays: {reason}")


def _show(settings: Settings, table: DynamicTable, *, limit: int, **chosen: Any) -> None:
    from storage_lib.table.inspect.rejected_records import as_system_table

    found = as_system_table(table.inspect.rejected_records(**chosen)).sort_by("time")
    shown = found.slice(max(0, found.num_rows - limit))
    rows = [{name: _text(value) for name, value in row.items()} for row in shown.to_pylist()]
    if settings.as_json or not chosen["ids"]:
        print_rows(rows, as_json=settings.as_json, columns=_LISTED)
        if found.num_rows > limit and not settings.as_json:
            note(f"the newest {limit} of {found.num_rows} records; --limit shows more")
        return
    for row in rows:
        print_fields(row, as_json=False)


def _text(value: object) -> object:
    """Return bytes as the text that they are, or in hexadecimal digits."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()
