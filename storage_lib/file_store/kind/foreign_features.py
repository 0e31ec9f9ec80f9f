"""What tables of other engines may ask for and this library lacks: refused by name, since rows would come out wrong.

Options are looked at when a table is opened, files when they are read: a table may have lost an option since.
"""

from __future__ import annotations

import re

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.table_schema import TableSchema

_OPTIONS = (
    # columns in files of their own, joined by row id
    "blob-field",
    "data-evolution.enabled",
    "row-tracking.enabled",
    # rows of other branches
    "chain-table.enabled",
    "scan.fallback-branch",
    "scan.primary-branch",
    # files elsewhere
    "data-file.path-directory",
    "index-file-in-data-file-dir",
    # another order of rows or versions
    "pk-clustering-override",
    "sequence.snapshot-ordering",
    # other rows
    "record-level.expire-time",
    "rowkind.field",
)
"""Options that change which rows a table shows, or where they are, in ways not known here."""

_INDEX_OF_KEYS = re.compile(r"pk-[a-z-]+\.index\.columns")
"""Indexes that every writer has to keep; a look-up by another engine would miss the rows of one that does not."""

_POSTPONED_BUCKETS = -2
_MANIFEST_FORMAT = "manifest.format"


def refuse_foreign_features(table: str, schema: TableSchema, options: TableOptions) -> None:
    """Raise ``InvalidInputError`` naming an option of the table that can't be honoured; ``table`` is its name."""
    for key, text in options.others.items():
        is_known = key in _OPTIONS or _INDEX_OF_KEYS.fullmatch(key)
        if is_known and text.strip().lower() != "false":
            message = (
                f"table {table} has option {key}={text}, which another engine set and this library can't honour: its "
                "rows would come out wrong. Read it with that engine, or rewrite it there without the option"
            )
            raise InvalidInputError(message)
    manifest_format = options.others.get(_MANIFEST_FORMAT, "avro").strip().lower()
    if manifest_format != "avro":
        message = (
            f"table {table} has option {_MANIFEST_FORMAT}={manifest_format}: its manifests are kept in "
            "another format than Avro, the only one that this library reads and writes. Copy the rows into a table "
            "without that option, by the engine that made it (CREATE TABLE ... AS SELECT)"
        )
        raise InvalidInputError(message)
    if schema.bucket_count == _POSTPONED_BUCKETS:
        message = (
            f"table {table} has option bucket={_POSTPONED_BUCKETS}: its rows lie in no bucket until the engine that "
            "made it compacts it, and would come out unmerged. Read it with that engine, or rewrite it there with a "
            "fixed number of buckets"
        )
        raise InvalidInputError(message)
