"""Commands that create and drop tables, read them and write into them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from storage_lib.cli.command_line_options import parsed_options
from storage_lib.cli.context import Settings, reporting, settings_of
from storage_lib.cli.inspect_commands import TableName
from storage_lib.cli.output import note, print_fields, print_rows, python_rows
from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_ROWS = 20


class FileKind(StrEnum):
    """Formats of rows outside of tables."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for command in (create, drop, read, write, ingest):
        app.command()(reporting(command))


def create(
    context: typer.Context,
    table: TableName,
    columns: Annotated[
        str, typer.Argument(help="Columns as in SQL: 'id BIGINT NOT NULL, name STRING, at TIMESTAMP(6)'.")
    ],
    key: Annotated[list[str] | None, typer.Option("--key", "-k", help="Primary key column; may be repeated.")] = None,
    partition_by: Annotated[list[str] | None, typer.Option(help="Partition column; may be repeated.")] = None,
    with_: Annotated[list[str] | None, typer.Option("--with", help="Table option, key=value; may be repeated.")] = None,
    comment: Annotated[str | None, typer.Option(help="Comment of the table.")] = None,
    if_not_exists: Annotated[bool, typer.Option(help="Keep an existing table; log a warning if it differs.")] = False,
) -> None:
    """Create a table and its log."""
    from storage_lib.schema.types.type_spelling import parse_columns

    made = (
        settings_of(context)
        .catalog(may_be_new=True)
        .create_table(
            table,
            dict(parse_columns(columns)),
            primary_key=key or (),
            partition_by=partition_by or (),
            options=parsed_options(with_ or (), "--with"),
            comment=comment,
            if_not_exists=if_not_exists,
        )
    )
    note(f"{made.name} is at {made.location}")


def drop(
    context: typer.Context,
    table: TableName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    if_exists: Annotated[bool, typer.Option(help="Do nothing if the table does not exist.")] = False,
) -> None:
    """Drop a table with all its data, files and log."""
    if not yes:
        typer.confirm(f"Delete {table} with all its data?", abort=True, err=True)
    settings_of(context).catalog().drop_table(table, if_exists=if_exists)
    note(f"{table} is dropped")


def read(
    context: typer.Context,
    table: TableName,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Columns to print, separated by commas.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--filter", help="Only rows that match, as in SQL: \"price > 5 AND item LIKE 'c%'\".")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")] = None,
    snapshot: Annotated[int | None, typer.Option(help="Read this snapshot.")] = None,
    tag: Annotated[str | None, typer.Option(help="Read this tag.")] = None,
    format: Annotated[
        FileKind | None,
        typer.Option("--format", "-f", help="Output format; default: by the file's name, else a text table."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write to this file instead of standard output.")
    ] = None,
) -> None:
    """Read rows: as a text table (20 rows unless --limit says otherwise), JSON lines, CSV, Arrow or Parquet."""
    settings = settings_of(context)
    kind = format or _kind_of(output) or (FileKind.JSON if settings.as_json else FileKind.TABLE)
    if kind is FileKind.TABLE and output is not None:
        message = f"{output}: a file is json, csv, arrow or parquet; choose one with --format"
        raise InvalidInputError(message)
    wanted = [each.strip() for each in columns.split(",")] if columns else None
    reader = _reader(settings, table, wanted, where, snapshot=snapshot, tag=tag)
    if kind is FileKind.TABLE:
        shown = _SHOWN_ROWS if limit is None else limit
        rows = list(itertools.islice(_rows(_limited(reader, shown + 1)), shown + 1))
        print_rows(rows[:shown], as_json=False, columns=reader.schema.names, null="NULL")
        if limit is None and len(rows) > shown:
            note(f"the first {shown} rows; --limit shows more")
        return
    if output is None:
        _write_out(kind, _limited(reader, limit), reader.schema, sys.stdout.buffer)
    else:
        with output.open("wb") as sink:
            note(f"{_write_out(kind, _limited(reader, limit), reader.schema, sink)} rows -> {output}")


def write(
    context: typer.Context,
    table: TableName,
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines, Arrow or Parquet; - is standard input.")],
    format: Annotated[FileKind | None, typer.Option("--format", "-f", help="Default: by the file's name.")] = None,
    overwrite: Annotated[
        bool, typer.Option(help="Replace the rows of the table, or of the partitions written.")
    ] = False,
) -> None:
    """Write the rows of a file into a table, in one commit."""
    settings = settings_of(context)
    kind = format or _kind_of(file)
    if kind in (None, FileKind.TABLE):
        message = f"{file}: specify --format csv, json, arrow or parquet"
        raise InvalidInputError(message)
    opened = settings.table(table)
    rows = _read_in(kind, file, opened.arrow_schema)
    snapshot = opened.overwrite(rows) if overwrite else opened.append(rows)
    print_fields(
        {"snapshot": None if snapshot is None else snapshot.id, "rows": rows.num_rows}, as_json=settings.as_json
    )


def ingest(
    context: typer.Context,
    table: TableName,
    topic: Annotated[str, typer.Argument(help="The external topic.")],
    format: Annotated[
        str, typer.Option("--format", "-f", help="debezium-json, debezium-avro, upsert-kafka, ...")
    ] = "debezium-json",
    startup: Annotated[
        str, typer.Option(help="Where to start a topic that was not read before: full or latest.")
    ] = "full",
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", help="Option of the source, such as source.on-reject=quarantine; repeatable."),
    ] = None,
    *,
    skip_expired: Annotated[
        bool, typer.Option("--skip-expired", help="Continue after records that the topic no longer holds.")
    ] = False,
) -> None:
    """Ingest new records of an external topic into a table."""
    from storage_lib import ingest as ingested

    settings = settings_of(context)
    result = ingested(
        settings.table(table),
        topic,
        options={**settings.options, **parsed_options(with_ or (), "--with")},
        format=format,
        startup=startup,
        skip_expired=skip_expired,
    )
    snapshot = None if result.snapshot is None else result.snapshot.id
    refused = {"skipped": result.skipped_count, "rejected": result.rejected_count}
    fields = {"snapshot": snapshot, "rows": result.row_count, **{key: n for key, n in refused.items() if n}}
    print_fields(fields, as_json=settings.as_json)


def _kind_of(file: Path | None) -> FileKind | None:
    known = {".csv": FileKind.CSV, ".json": FileKind.JSON, ".jsonl": FileKind.JSON, ".arrow": FileKind.ARROW,
             ".parquet": FileKind.PARQUET}  # fmt: skip
    return None if file is None else known.get(file.suffix.lower())


def _limited(reader: pa.RecordBatchReader, limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in reader:
        if left is None:
            yield batch
            continue
        if left <= 0:
            return
        yield batch.slice(0, left)
        left -= batch.num_rows


def _reader(
    settings: Settings,
    name: str,
    columns: list[str] | None,
    where: str | None,
    *,
    snapshot: int | None,
    tag: str | None,
) -> pa.RecordBatchReader:
    from storage_lib.catalog.table_name import TableName as Name

    if Name.parse(name).system_table is None:
        return settings.table(name).read(columns=columns, filter=where, snapshot_id=snapshot, tag=tag)
    if snapshot is not None or tag is not None or where is not None:
        message = f"{name} is a system table; it takes no --snapshot, --tag or --filter"
        raise InvalidInputError(message)
    found = settings.catalog().system_table(name)
    for column in columns or ():
        if column not in found.schema.names:
            message = f"unknown column {column!r}; the columns are {', '.join(found.schema.names)}"
            raise InvalidInputError(message)
    return (found if columns is None else found.select(columns)).to_reader()


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, object]]:
    for batch in batches:
        yield from python_rows(batch)


def _write_out(kind: FileKind, batches: Iterator[pa.RecordBatch], schema: pa.Schema, sink: object) -> int:
    """Write batch by batch, so that a table may be larger than memory; return the number of rows."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    count = 0
    if kind is FileKind.JSON:
        import json

        from storage_lib.cli.output import json_value

        for batch in batches:
            count += batch.num_rows
            lines = (json.dumps(row, default=json_value, ensure_ascii=False) for row in python_rows(batch))
            sink.write("".join(f"{line}\n" for line in lines).encode())  # type: ignore[attr-defined]
        return count
    makers = {
        FileKind.CSV: pa.csv.CSVWriter,
        FileKind.ARROW: pa.ipc.new_stream,
        FileKind.PARQUET: pa.parquet.ParquetWriter,
    }
    with makers[kind](sink, schema) as writer:
        for batch in batches:
            count += batch.num_rows
            writer.write_batch(batch)
    return count


def _read_in(kind: FileKind | None, file: Path, schema: pa.Schema) -> pa.Table:
    """Read the file's rows; CSV and JSON columns that the table also has get the table's types."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    # Parquet needs to seek, which standard input can't.
    source = pa.BufferReader(sys.stdin.buffer.read()) if str(file) == "-" else pa.OSFile(str(file))
    try:
        if kind is FileKind.CSV:
            types = {field.name: field.type for field in schema}
            return pa.csv.read_csv(source, convert_options=pa.csv.ConvertOptions(column_types=types))
        if kind is FileKind.JSON:
            options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
            return pa.json.read_json(source, parse_options=options)
        if kind is FileKind.ARROW:
            return pa.ipc.open_stream(source).read_all()
        return pa.parquet.read_table(source)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        message = f"{file} can't be read as {kind}: {error}"
        raise InvalidInputError(message) from error
