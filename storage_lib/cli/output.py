"""Output of commands: a text table, or one JSON document with ``--json``; notes go to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import pyarrow as pa


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    as_json: bool,
    columns: Sequence[str] | None = None,
    null: str = "",
    may_page: bool = False,
) -> None:
    """Print rows that have the same columns.

    In a text table ``null`` stands for a missing value. With ``may_page``, a table longer than the terminal goes
    through a pager.
    """
    if as_json:
        print_json(list(rows))
        return
    names = list(columns or (rows[0] if rows else ()))
    if not names:
        note("nothing")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        values = [row[name] for row in rows if row[name] is not None]
        is_number = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(escape(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(null if row[name] is None else shown(row[name])) for name in names))
    console = _console()
    if may_page and console.is_terminal and len(rows) >= console.height:
        with console.pager(styles=True):
            console.print(table)
    else:
        console.print(table)


def python_rows(rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Return rows as Python values. Dates and times that Python can't represent become their stored numbers."""
    try:
        return rows.to_pylist()
    except (OverflowError, ValueError):
        columns = [[_python_value(value) for value in column] for column in rows.columns]
        return [dict(zip(rows.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _python_value(value: Any) -> Any:
    """Convert an Arrow scalar as ``as_py`` does; values that Python can't represent become stored numbers."""
    import pyarrow as pa

    try:
        return value.as_py()
    except (OverflowError, ValueError):
        parts = value.values if isinstance(getattr(value, "values", None), pa.Array) else None
        if parts is None and isinstance(value, pa.StructScalar):
            return {name: _python_value(value[name]) for name in value}
        if parts is None:
            return value.value
        entries = [_python_value(each) for each in parts]
        is_map = isinstance(value, pa.MapScalar)
        return [tuple(entry.values()) for entry in entries] if is_map else entries


def print_fields(fields: Mapping[str, Any], *, as_json: bool) -> None:
    """Print names with their values; the text table omits names without a value."""
    if as_json:
        print_json(fields)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value not in (None, ""):
            table.add_row(escape(name), escape(shown(value)))
    _console().print(table)


def print_json(value: object) -> None:
    """Print one JSON document; values of types that JSON lacks become text."""
    sys.stdout.write(json.dumps(value, indent=2, default=json_value, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """Print a line to standard error, for the user; it is not part of the result."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(escape(text))


@contextmanager
def waiting(text: str, file: TextIO | None = None) -> Iterator[None]:
    """Show ``text`` with a spinner on ``file`` (default: standard error) while the block runs, on a terminal only."""
    console = Console(file=file or sys.stderr)
    with console.status(escape(text)) if console.is_terminal else nullcontext():
        yield


def shown(value: object) -> str:
    """Return a value as text for a table; None is empty."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if value.tzinfo else str(value)
    if isinstance(value, list | dict):
        return json.dumps(value, default=json_value, ensure_ascii=False)
    return str(value)


def json_value(value: object) -> object:
    """Return the JSON text of a value whose type JSON lacks."""
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _console() -> Console:
    # Output to a pipe is wide enough that no line is wrapped.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
