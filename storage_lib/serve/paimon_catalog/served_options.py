"""Options that a client of the server may set on a table: those that describe its rows and files.

A table's options are read by every process that opens it. One that names a server, a directory, a class or a query
would make those processes reach it, with their rights; so only options that are listed here, by their kind, are taken.
"""

from __future__ import annotations

import re

from storage_lib.schema.options.table_options import canonical_key, option_keys
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError

_DESCRIBING = frozenset({"bucket-key", "bucket-function.type"})
_OF_FIELDS = re.compile(r"fields\.[^.]+\.(?:aggregate-function|ignore-retract|distinct|sequence-group|nested-key)")
_REACHING = (
    *("log.", "kafka.", "column.", "data-file.external-paths", "file.root-path", "materialized-table."),
    *("scan.normalize.", "watermark."),
)
"""Beginnings of options that name topics, servers, directories or expressions."""


def require_served_option(key: str) -> None:
    """Raise ``RefusedRequestError`` for an option that a client may not set."""
    of_table = canonical_key(key)
    is_describing = of_table in option_keys() and not of_table.startswith(_REACHING)
    if not (is_describing or of_table in _DESCRIBING or _OF_FIELDS.fullmatch(of_table)):
        message = (
            f"option {key!r} can't be set through the server, which takes only options that describe rows and files; "
            "set it in SQL or Python"
        )
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
