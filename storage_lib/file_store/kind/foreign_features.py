"""Features of other engines' tables that this library lacks: refused by name, since rows would be wrong.

Options are checked when a table is opened, files when they are read: an option may have been removed since.
"""

from __future__ import annotations

import re

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.table_schema import TableSchema

_OPTIONS = (
    # columns in separate files, joined by row id
    "blob-field",
    "data-evolution.enabled",
    "row-tracking.enabled",
    # rows of other branches
    "chain-table.enabled",
    "scan.fallback-branch",
    "scan.primary-branch",
    # files in other directories
    "data-file.path-directory",
    "index-file-in-data-file-dir",
    # different order of rows or versions
    "pk-clustering-override",
    "sequence.snapshot-ordering",
    # different rows
    "record-level.expire-time",
    "rowkind.field",
)
"""Options that change the rows of a table, or their location, in unsupported ways."""

_INDEX_OF_KEYS = re.compile(r"pk-[a-z-]+\.index\.columns")
"""Indexes that every writer has to maintain: a lookup by another engine would miss rows written without them."""

_POSTPONED_BUCKETS = -2
_MANIFEST_FORMAT = "manifest.format"


def refuse_unsupported_features(table: str, schema: TableSchema, options: TableOptions) -> None:
    """Raise ``InvalidInputError`` naming an unsupported option of the table; ``table`` is its name."""
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
