"""Runs in the interpreter of .local/iceberg: reads a table's Iceberg view with PyIceberg or with DuckDB.

pyiceberg <metadata file> <out.arrow> [<snapshot id>]
duckdb <metadata file> <out.arrow> [<snapshot id>]
count <metadata file>                                    the number of rows, by DuckDB
planned <metadata file> <out.arrow> <filter>             how many files PyIceberg reads for a filter
manifests <metadata file> <filter>                       how many manifests PyIceberg opens for a filter
filtered <metadata file> <filter>                        rows by DuckDB, filtered before and after it has read them
program <Python text>                                    what it prints
statements <SQL text>                                    the rows of each statement, by DuckDB, as text
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import duckdb_extension_avro  # type: ignore[import-not-found]  # of the other environment
import duckdb_extension_iceberg  # type: ignore[import-not-found]
import pyarrow as pa
from pyiceberg import expressions
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import DataScan, StaticTable

OPERATORS = {
    "=": "EqualTo",
    "!=": "NotEqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}


def main(verb: str, metadata: str, *more: Any) -> dict[str, Any]:
    if verb == "planned":
        return planned(metadata, *more)
    if verb == "manifests":
        return manifests(metadata, *more)
    if verb == "filtered":
        return filtered(metadata, *more)
    return answered(verb, metadata, *more)


def answered(verb: str, metadata: str, out: str = "", snapshot_id: int | None = None) -> dict[str, Any]:
    if verb == "count":
        return {"count": count(metadata)}
    if verb == "program":
        return {"printed": printed(metadata)}
    if verb == "statements":
        return {"rows": answers(metadata)}
    write_ipc(read(verb, metadata, snapshot_id), Path(out))
    return {}


def count(metadata: str) -> int:
    """Return the number of rows, for which DuckDB reads no column."""
    ((found,),) = connection().from_query(f"FROM iceberg_scan('{metadata}')").aggregate("count(*)").fetchall()
    return int(found)


def planned(metadata: str, out: str, condition: tuple[str, str, Any]) -> dict[str, Any]:
    """Write the rows that match, and return how many data files they were read from."""
    scan = scan_of(metadata, condition)
    write_ipc(scan.to_arrow(), Path(out))
    return {"files": len(list(scan.plan_files()))}


def manifests(metadata: str, condition: tuple[str, str, Any]) -> dict[str, Any]:
    """Return how many manifests are opened to plan a scan."""
    opened = []
    fetch = ManifestFile.fetch_manifest_entry

    def counted(manifest: ManifestFile, *args: Any, **options: Any) -> Any:
        opened.append(manifest.manifest_path)
        return fetch(manifest, *args, **options)

    with patch.object(ManifestFile, "fetch_manifest_entry", counted):
        list(scan_of(metadata, condition).plan_files())
    return {"manifests": len(opened)}


def scan_of(metadata: str, condition: tuple[str, str, Any]) -> DataScan:
    column, operator, value = condition
    if operator in OPERATORS:
        found = getattr(expressions, OPERATORS[operator])(column, value)
    else:
        found = {"is null": expressions.IsNull, "is not null": expressions.NotNull}[operator](column)
    return StaticTable.from_metadata(metadata).scan(row_filter=found)


def filtered(metadata: str, condition: tuple[str, str, Any]) -> dict[str, Any]:
    """Return the rows that match: filters that DuckDB pushes into the scan, and the same over rows in memory."""
    column, operator, value = condition
    quoted = column.replace('"', '""')
    db = connection()
    db.execute(f"CREATE OR REPLACE TEMP TABLE everything AS FROM iceberg_scan('{metadata}')")
    where = f'"{quoted}" {operator}'
    if operator in OPERATORS:
        (of,) = (row[1] for row in db.execute("DESCRIBE everything").fetchall() if row[0] == column)
        text = str(value).replace("'", "''")
        where += f" CAST('{text}' AS {of})"
    some, whole = (
        sorted(map(repr, db.execute(f"FROM {source} WHERE {where}").fetchall()))
        for source in (f"iceberg_scan('{metadata}')", "everything")
    )
    return {"some": some, "all": whole}


def read(verb: str, metadata: str, snapshot_id: int | None) -> pa.Table:
    if verb == "pyiceberg":
        return StaticTable.from_metadata(metadata).scan(snapshot_id=snapshot_id).to_arrow()
    more = "" if snapshot_id is None else f", snapshot_from_id => {snapshot_id}"
    return connection().sql(f"FROM iceberg_scan('{metadata}'{more})").to_arrow_table()


def printed(program: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "program", "exec"), {})  # noqa: S102  of a page of the documentation
    return out.getvalue()


def answers(text: str) -> list[str]:
    """Run statements in a database of their own, which may open REST catalogs."""
    import duckdb_extension_httpfs  # type: ignore[import-not-found]

    opened = with_extensions(duckdb_extension_httpfs)
    rows = [str(opened.execute(each).fetchall()) for each in text.split(";") if each.strip()]
    opened.close()
    return rows


@cache
def connection() -> duckdb.DuckDBPyConnection:
    return with_extensions()


def with_extensions(*more: Any) -> duckdb.DuckDBPyConnection:
    """Open a connection with the extensions that their packages carry, so that nothing is downloaded."""
    opened = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for module in (duckdb_extension_avro, *more, duckdb_extension_iceberg):
        (file,) = Path(module.__file__).parent.rglob("*.duckdb_extension")
        opened.execute(f"LOAD '{file}'")
    opened.execute("SET TimeZone = 'UTC'")
    opened.execute("SET threads = 1")
    return opened


def write_ipc(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)


def serve() -> None:
    """Serve commands from standard input: the imports take a second or two, a command a few milliseconds."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            answer = main(*json.loads(line))
        except Exception as error:  # noqa: BLE001  told to the tests
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
