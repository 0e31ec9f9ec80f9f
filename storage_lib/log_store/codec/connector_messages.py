"""Records of a connector of Debezium about no row: the bounds of transactions, heartbeats, notifications.

with a schema       its name tells them (io.debezium.schema.SchemaFactory)
without a schema    {"status":"BEGIN","id":"571",...} and {"ts_ms":1}; an envelope has "op"

Rows without envelopes and without a schema may look the same, so these are never taken for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

    from storage_lib.schema.types.nested_arrays import Mask

_NAMES = frozenset(
    f"io.debezium.connector.common.{name}" for name in ("TransactionMetadataValue", "Heartbeat", "Notification")
)
_WITHOUT_SCHEMA = r'^\{"status":"(BEGIN|END)","id":"|^\{"ts_ms":[0-9]+\}$'
"""As Kafka Connect's converter writes them: fields in the order of their schema, without spaces."""


def is_message_schema(schema: object) -> bool:
    """Return whether a schema of Connect, or a type of Avro, is that of such records."""
    if not isinstance(schema, Mapping):
        return False
    name, namespace = str(schema.get("name")), schema.get("namespace")
    return (name if "." in name else f"{namespace}.{name}") in _NAMES


def are_messages(texts: pa.Array) -> Mask:
    """Return which JSON texts (strings without nulls), of records without schemas among envelopes, are messages."""
    found: Mask = pc.match_substring_regex(texts, _WITHOUT_SCHEMA).to_numpy(zero_copy_only=False)
    return found
