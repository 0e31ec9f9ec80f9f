"""Columns of rejected records: those of a source that did not decode, or did not fit the table."""

from __future__ import annotations

import pyarrow as pa

from storage_lib.errors import InvalidInputError

ID = "id"

REJECTED_SCHEMA = pa.schema(
    [
        ("time_millis", pa.int64()),
        ("source", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_millis", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("column", pa.string()),
        ("reason", pa.string()),
    ]
)
"""What a commit brings (``DynamicTable.append``): when and why a record was rejected, and its position and bytes."""

STORED_SCHEMA = pa.schema([(ID, pa.string()), *REJECTED_SCHEMA])
"""What is stored: each record also has an id, which is unique in the table and its branches."""


def checked_rejected(table: str, rejected: pa.Table) -> pa.Table:
    """Return the records with the columns of ``REJECTED_SCHEMA``; ``InvalidInputError`` if they have others."""
    names, wanted = rejected.schema.names, REJECTED_SCHEMA.names
    if sorted(names) != sorted(wanted):
        message = (
            f"table {table}: rejected records have the columns {', '.join(names) or '(none)'}; "
            f"give those of REJECTED_SCHEMA: {', '.join(wanted)}"
        )
        raise InvalidInputError(message)
    try:
        return rejected.select(wanted).cast(REJECTED_SCHEMA)
    except pa.ArrowInvalid as error:
        message = f"table {table}: rejected records do not have the types of REJECTED_SCHEMA: {error}"
        raise InvalidInputError(message) from error
