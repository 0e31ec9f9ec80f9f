"""The command ``verify``: exit code 0 if the table and its source have the same rows, 3 if they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from storage_lib.cli.context import REFUSED, TRY_AGAIN, Settings, reporting, settings_of, without_secrets
from storage_lib.cli.inspect_commands import TableName
from storage_lib.cli.output import print_fields, print_json, print_rows
from storage_lib.errors import InvalidInputError, RetryableError

if TYPE_CHECKING:
    from storage_lib import DynamicTable
    from storage_lib.verification.verification import Verification

_COUNTS = ("table_rows", "source_rows", "missing", "extra", "different", "repeated")
DIFFERENT = 3
"""Exit code for rows that differ; errors have others."""


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(reporting(verify))


def verify(
    context: typer.Context,
    table: TableName,
    against: Annotated[
        str | None,
        typer.Option(
            help="postgresql://user@host/database, another table as database.table, or the path of a Parquet file or "
            "folder (with a slash, such as ./export). Without it, --query is one of DuckDB."
        ),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option("--relation", "-r", help="Table or view of PostgreSQL, schema.name; default: the table's name."),
    ] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Compare with the rows of this query.")] = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", "-k", help="Column that identifies a row; default: the primary key.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Columns to compare, separated by commas; default: all.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", "-x", help="Column to leave out; may be repeated.")
    ] = None,
    snapshot: Annotated[int | None, typer.Option(help="Compare this snapshot of the table.")] = None,
    tag: Annotated[str | None, typer.Option(help="Compare this tag of the table.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Differences of each kind to name.")] = 20,
    values: Annotated[bool, typer.Option("--values", help="Print the values that differ, not only the keys.")] = False,
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Compare all tables that match TABLE, such as 'shop.*'. A * in --against and --relation is the "
            "table's name without its database.",
        ),
    ] = False,
) -> None:
    """Compare a table with its source: another database, table, folder or query.

    Prints how many keys are missing, extra, different or repeated, and names the first. The exit code is 0 if the
    rows are the same, 3 if they differ, 1 or 75 if they could not be compared. With --all, a table that can't be
    compared does not stop the others.
    """
    from storage_lib.verification.verify import verify as verified

    settings = settings_of(context)
    if all_:
        given = {"--query": query, "--key": key, "--columns": columns, "--snapshot": snapshot, "--tag": tag}
        _verify_all(settings, table, against, given, relation=relation, exclude=exclude or (), limit=limit)
        return
    result = verified(
        settings.table(table),
        _source(settings, against),
        relation=relation,
        query=query,
        key=key,
        columns=[each.strip() for each in columns.split(",")] if columns else None,
        exclude=exclude or (),
        snapshot_id=snapshot,
        tag=tag,
        limit=limit,
    )
    _print(result, as_json=settings.as_json, values=values)
    if not result.is_equal:
        raise typer.Exit(DIFFERENT)


def _verify_all(
    settings: Settings,
    pattern: str,
    against: str | None,
    of_one_table: Mapping[str, object],
    *,
    relation: str | None,
    exclude: Sequence[str],
    limit: int,
) -> None:
    """Compare all tables that match; the exit code is that of an error, else that of a difference."""
    from storage_lib.verification.verify_tables import verify_tables

    given = [option for option, value in of_one_table.items() if value not in (None, [])]
    if given or against is None:
        message = f"--all takes --against, and no {given[0] if given else '--query'}"
        raise InvalidInputError(message)
    _refuse_password(against)
    found = list(verify_tables(settings.catalog(), pattern, against, relation=relation, exclude=exclude, limit=limit))
    rows = [
        {
            "table": each.table,
            "result": "error" if each.result is None else "equal" if each.result.is_equal else "different",
            **{kind: None if each.result is None else getattr(each.result, kind) for kind in _COUNTS},
            "error": None if each.error is None else without_secrets(f"{type(each.error).__name__}: {each.error}"),
        }
        for each in found
    ]
    print_rows(rows, as_json=settings.as_json)
    errors = [each.error for each in found if each.error is not None]
    if errors:
        raise typer.Exit(TRY_AGAIN if all(isinstance(each, RetryableError) for each in errors) else REFUSED)
    if not all(each.result is not None and each.result.is_equal for each in found):
        raise typer.Exit(DIFFERENT)


def _source(settings: Settings, against: str | None) -> DynamicTable | str | None:
    from storage_lib.verification.verify_tables import is_address

    if against is None:
        return None
    _refuse_password(against)
    return against if is_address(against) else settings.table(against)


def _refuse_password(against: str) -> None:
    from storage_lib.schema.options.secret_text import holds_secret

    if holds_secret(against):
        message = (
            "the address of --against has a password, and other users of this machine can read a command line; put it "
            "into ~/.pgpass or a service file (PGPASSFILE, PGSERVICEFILE), or into the variable PGPASSWORD"
        )
        raise InvalidInputError(message)


def _print(result: Verification, *, as_json: bool, values: bool) -> None:
    differences = [_shown(asdict(each), values=values) for each in result.differences]
    if as_json:
        print_json({"is_equal": result.is_equal, **asdict(result), "differences": differences})
        return
    print_fields(
        {
            "table": f"{result.table}, {result.table_position}: {result.table_rows} rows",
            "source": f"{result.source}, {result.source_position}: {result.source_rows} rows",
            "result": "equal" if result.is_equal else "different",
            "missing": result.missing or None,
            "extra": result.extra or None,
            "different": result.different or None,
            "repeated": result.repeated or None,
            "columns": dict(result.columns) or None,
        },
        as_json=False,
    )
    if differences:
        print_rows(differences, as_json=False)


def _shown(difference: dict[str, Any], *, values: bool) -> dict[str, Any]:
    shown = {"kind": str(difference["kind"]), "key": difference["key"], "columns": ", ".join(difference["columns"])}
    if values:
        shown |= {"in the table": difference["table_values"], "in the source": difference["source_values"]}
    return shown
