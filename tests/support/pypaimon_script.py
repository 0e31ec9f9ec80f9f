"""Runs in the interpreter of .local/paimon: reads or writes a table with pypaimon, an independent implementation.

read <warehouse> <db.table> <out.arrow> [<filter json: [method, column, value]> [<options json>]]
create <warehouse> <db.table> <in.arrow> <options json: primary_keys, partition_keys, options>
append <warehouse> <db.table> <in.arrow>
alter <warehouse> <db.table> <changes json: [[method, column, argument]]>
travel <warehouse> <db.table> <out.arrow> <table options json>
catalog <warehouse> <db.table> <method of the catalog> <arguments json>
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema  # type: ignore[import-not-found]  # of the other environment
from pypaimon.schema.data_types import AtomicType  # type: ignore[import-not-found]
from pypaimon.schema.schema_change import SchemaChange  # type: ignore[import-not-found]


def main(verb: str, warehouse: str, identifier: str, file: str, *more: str) -> None:
    catalog = CatalogFactory.create(json.loads(warehouse) if warehouse.startswith("{") else {"warehouse": warehouse})
    if verb == "read":
        filters, options = (json.loads(each) for each in (*more, *["null"] * 2)[:2])
        table = catalog.get_table(identifier)
        write_ipc(read(table.copy(options) if options else table, filters), Path(file))
        return
    if verb == "travel":
        write_ipc(read(catalog.get_table(identifier).copy(json.loads(more[0])), None), Path(file))
        return
    if verb == "catalog":
        getattr(catalog, file)(identifier, *json.loads(more[0]))
        return
    if verb == "alter":
        catalog.alter_table(identifier, [change_of(*change) for change in json.loads(file)], False)
        return
    rows = pa.ipc.open_file(file).read_all()
    if verb == "create":
        catalog.create_database(identifier.split(".", maxsplit=1)[0], ignore_if_exists=True)
        catalog.create_table(identifier, Schema.from_pyarrow_schema(rows.schema, **json.loads(more[0])), False)
    append(catalog.get_table(identifier), rows)


def change_of(method: str, column: str, argument: str) -> Any:
    is_type = method != "rename_column"
    return getattr(SchemaChange, method)(column, AtomicType(argument) if is_type else argument)


def read(table: Any, filters: list[Any] | None) -> pa.Table:
    builder = table.new_read_builder()
    if filters is not None:
        method, column, value = filters
        builder = builder.with_filter(getattr(builder.new_predicate_builder(), method)(column, value))
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def append(table: Any, rows: pa.Table) -> None:
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def write_ipc(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)


def serve() -> None:
    """Serve commands from standard input: importing pypaimon takes a second or two, a command a few milliseconds."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            main(*json.loads(line))
            answer = {}
        except Exception as error:  # noqa: BLE001  told to the tests
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        main(*sys.argv[1:])
