"""Examples of docs/format.md, generated from a real table in a deterministic environment.

    python -m tests.support.format_examples        # updates the page and docs/options.md

In the page, a comment ``<!-- example: NAME -->`` precedes each generated block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.dump import indented
from storage_lib.file_store.merge_tree.aggregate_function.aggregators import functions_documentation
from storage_lib.format.avro_container import decode_container
from storage_lib.io.file_io import FileIO
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.schema.options.option_reference import (
    OptionDescription,
    family_descriptions,
    option_descriptions,
    paimon_descriptions,
    source_descriptions,
)
from storage_lib.schema.options.table_options import ChangelogMode, older_spellings
from storage_lib.schema.types.row_kind import RowKind
from tests.support.fake_environment import fake_environment

DOCS = Path(__file__).parents[2] / "docs"
FORMAT_PAGE, OPTIONS_PAGE = DOCS / "format.md", DOCS / "options.md"
BLOCK = re.compile(r"(<!-- example: ([a-z0-9 -]+) -->\n```[a-z]*\n)(.*?)(```)", re.DOTALL)
COLUMNS = pa.schema([("dt", pa.date32()), ("id", pa.int64()), ("price", pa.decimal128(10, 2))])
OPTIONS_HEAD = """# Options

The options of tables and of their columns. [Choosing buckets and merge engines](choosing.md) and [Tuning](tuning.md)
say when to change the most important ones; [Catalogs](catalogs.md) and [Stores](stores.md) describe those of a
connection. `dynamic-table options [PREFIX]` and `storage_lib.describe_options(prefix)` show the same.

Generated from `storage_lib/schema/options` by `python -m tests.support.format_examples`; do not edit.

Give options to `create_table(..., options={...})`, or to `WITH (...)` in SQL. A missing option is taken from the
catalog (`open_catalog(warehouse, options)`, or the connection of Airflow), then from the defaults. CREATE merges the
options of table and catalog and stores the result in the table's schema, so a later change of the catalog's options
changes no existing table.

Options of the catalog that begin with `log.kafka.` (servers, settings of the Kafka client) and secrets are not stored
in the table: the catalog supplies them each time it opens the table. A secret among a table's own options is refused.
`log.kafka.*` keys that are not listed here are passed to the Kafka client.

## Tables

"""


def filled_in(page: str) -> str:
    """Return the page with every marked block regenerated."""
    made = examples()
    return BLOCK.sub(lambda found: f"{found[1]}{made[found[2]]}\n{found[4]}", page)


FAMILIES = """
## Columns, clients and buckets

"""
SOURCES = """
## Sources of changes

Given to `ingest`, or to a stream that reads a topic, not to a table: [Change data capture](cdc.md) says when.

"""
UNKNOWN = """
Any other key is refused, with the nearest known key, in CREATE TABLE, ALTER TABLE, SET, hints, connections and
`.option(...)` of Spark. Tables that other engines created can have any options.
"""
FUNCTIONS = """
## Aggregate functions

Values of `fields.<column>.aggregate-function`:

"""
OLDER = """
## Other spellings

Older names of options, from FLIP-188 and Paimon:

| given | read as |
|---|---|
"""
OF_PAIMON = """
## Paimon's options

Other engines, such as Flink, use the same table through Paimon, so their options can be set here. Unless they are
refused, they are stored in the schema and have no effect in this library:

"""


def options_page() -> str:
    """Return the generated text of docs/options.md."""
    older = "".join(f"| `{older}` | `{key}` |\n" for older, key in sorted(older_spellings().items()))
    ours, families = _table_of(option_descriptions()), _table_of(family_descriptions())
    sources = _table_of(source_descriptions())
    parts = (OPTIONS_HEAD, ours, FAMILIES, families, SOURCES, sources, UNKNOWN, FUNCTIONS, functions_documentation())
    return "".join((*parts, OLDER, older, OF_PAIMON, _paimon()))


def _table_of(options: Iterable[OptionDescription]) -> str:
    rows = (f"| `{each.option}` | {each.default} | {each.meaning} |\n" for each in options)
    return "".join(["| option | default | meaning |\n", "|---|---|---|\n", *rows])


def _paimon() -> str:
    """Return the list of Paimon's options, grouped by how this library treats them."""
    by_meaning: dict[str, list[str]] = {}
    for each in paimon_descriptions():
        by_meaning.setdefault(each.meaning, []).append(f"`{each.option}`")
    return "".join(f"* {meaning} {', '.join(keys)}\n" for meaning, keys in by_meaning.items())


def examples() -> dict[str, str]:
    """Return every example by name, from an append, a deletion and a compaction of one table with a log."""
    environment = fake_environment()
    catalog = MemoryCatalog(environment=environment)
    table = catalog.create_table(
        "shop.orders", COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "2"}
    )
    prices = [Decimal("9.50"), None, Decimal("3.00")]
    rows = pa.table({"dt": [date(2013, 1, 5)] * 3, "id": [1, 2, 7], "price": prices}, schema=COLUMNS)
    table.append(rows, commit_user="writer", commit_identifier=1)
    deletion = rows.slice(0, 1).append_column("_row_kind", pa.array([RowKind.DELETE.symbol]))
    table.append(deletion, commit_user="writer", commit_identifier=2)
    files = environment.file_io
    layout = sorted(path.removeprefix(f"{table.location}/") for path in _files_below(files, table.location))
    table.compact(commit_user="compaction", commit_identifier=1)
    first, last = (table.context.file_store.snapshots.load(each) for each in (1, 3))
    data_file = table.inspect.files(1)["file_path"][0].as_py()
    return {
        "layout": "\n".join(layout),
        "schema": _text(files, table, "schema/schema-0"),
        "snapshot": _text(files, table, "snapshot/snapshot-1"),
        "properties of a compaction": json.dumps(dict(last.properties), indent=2),
        "manifest list": _records(files, table, first.delta_manifest_list)[0],
        "manifest": _records(files, table, _manifest_of(files, table, first.delta_manifest_list))[0],
        "data file": _data_file(files, data_file),
        "log upsert": _log(table, ChangelogMode.UPSERT),
        "log all": _log(table, ChangelogMode.ALL),
        "lease": _text(files, table, "lease/lease-1"),
    }


def _files_below(files: FileIO, directory: str) -> Iterator[str]:
    for entry in files.list_directory(directory):
        path = f"{directory}/{entry.name}"
        if entry.is_directory:
            yield from _files_below(files, path)
        else:
            yield path


def _text(files: FileIO, table: DynamicTable, path: str) -> str:
    text = files.read_bytes(f"{table.location}/{path}").decode()
    # Put each field on one line, for readability.
    field = r'\{\s+"id": (\d+),\s+"name": ("\w+"),\s+"type": ("[^"]+")\s+\}'
    return re.sub(field, r'{"id": \1, "name": \2, "type": \3}', text)


def _records(files: FileIO, table: DynamicTable, name: str) -> list[str]:
    path = f"{table.location}/manifest/{name}"
    return [indented(record) for record in decode_container(files.read_bytes(path), path)]


def _manifest_of(files: FileIO, table: DynamicTable, manifest_list: str) -> str:
    path = f"{table.location}/manifest/{manifest_list}"
    return str(decode_container(files.read_bytes(path), path)[0]["_FILE_NAME"])


def _data_file(files: FileIO, path: str) -> str:
    parquet = pq.read_table(pa.BufferReader(files.read_bytes(path)))
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in parquet.schema]
    lines = [f"{'column':<18}{'Parquet field id':<18}{'type':<25}values"]
    for field, number in zip(parquet.schema, ids, strict=True):
        null = "" if field.nullable else " not null"
        values = ", ".join(str(value) for value in parquet[field.name].to_pylist())
        lines.append(f"{field.name:<18}{number:<18}{str(field.type) + null:<25}{values}")
    return "\n".join(lines)


def _log(table: DynamicTable, mode: ChangelogMode) -> str:
    price = [Decimal("9.50"), Decimal("9.50"), Decimal("8.00"), Decimal("8.00")]
    rows = pa.record_batch({"dt": [date(2013, 1, 5)] * 4, "id": [1] * 4, "price": price}, schema=COLUMNS)
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    codec = DebeziumJson.for_table(table.schema, mode)
    (encoded,) = codec.encode(rows.cast(table.arrow_schema), pa.array([int(kind) for kind in kinds], pa.int8()))
    pairs = zip(encoded.keys.to_pylist(), encoded.values.to_pylist(), strict=True)
    return "\n".join(f"{key.decode()}  {value.decode()}" for key, value in pairs)


if __name__ == "__main__":
    FORMAT_PAGE.write_text(filled_in(FORMAT_PAGE.read_text()))
    OPTIONS_PAGE.write_text(options_page())
