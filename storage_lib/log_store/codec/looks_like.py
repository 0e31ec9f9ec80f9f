"""Which format a record looks like, for errors about a topic that has another one than its reader was told.

Rows without envelopes are the danger: of an envelope, a reader of rows would take a row whose columns are all missing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

_REGISTERED = b"\x00"
"""First byte of a record in Avro whose schema is in a registry."""

_ID_BYTES = 5
_ENVELOPE = frozenset({"op", "before", "after"})
_CONVERTED = frozenset({"schema", "payload"})
_ENVELOPES = (frozenset({"op", "before"}), frozenset({"op", "after"}))
_TOOLS = frozenset({"data", "type", "database", "table"})
_ADDED = frozenset({"__op", "__deleted"})
_OTHER_TOOLS = "the JSON of Canal or Maxwell, which is not read: let Debezium write the topic"
_MEMBERS = (
    *("before", "after", "source", "op", "ts_ms", "ts_us", "ts_ns", "transaction", "schema", "payload"),
    *("data", "old", "type", "database", "table", "ts", "xid", "commit"),
)
"""Members of envelopes. An object that begins with one may be of another format, and is parsed; rows seldom do."""
_WRAPPED = rf'^\s*\{{\s*"({"|".join(_MEMBERS)})"\s*:'


def refuse_other_format(texts: pa.Array, columns: Collection[str]) -> None:
    """Raise ``ValueError`` for a record (strings without nulls) that is no row of these columns, but an envelope."""
    suspects = texts.filter(pc.match_substring_regex(texts, _WRAPPED))
    for text in suspects:
        record = json.loads(text.as_py())
        if not _is_row(record) and not _is_row_of(record, {*columns}):
            message = "it is not a row: it has none of the table's columns"
            raise ValueError(message)


def hint(value: bytes | None, format_: str) -> str:
    """Return a sentence that names the format which a record looks like, if it is another one; else nothing."""
    like = None if value is None else _format_of(value, is_upsert=format_.startswith("upsert"))
    if like is None or like == format_ or (like == "Avro" and format_.endswith("avro")):
        return ""
    if like == "Avro":
        return "The record looks like Avro of a schema registry: use a format that ends with -avro"
    if like == _OTHER_TOOLS:
        return f"The record looks like {like}"
    return f"The record looks like the format {like}"


def _format_of(value: bytes, *, is_upsert: bool) -> str | None:
    if value.startswith(_REGISTERED) and len(value) > _ID_BYTES:
        return "Avro"
    try:
        record = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return _format_of_object(record, is_upsert=is_upsert) if isinstance(record, dict) else None


def _format_of_object(record: Mapping[str, object], *, is_upsert: bool) -> str:
    if record.keys() == _CONVERTED:
        payload = record["payload"]
        is_row = not isinstance(payload, dict) or _is_row(payload)
        return "debezium-flattened-json-schema" if is_row else "debezium-json-schema"
    if _is_of_another_tool(record):
        return _OTHER_TOOLS
    if not _is_row(record):
        return "debezium-json"
    return "upsert-kafka" if is_upsert and not record.keys() & _ADDED else "debezium-flattened-json"


def _is_row(record: Mapping[str, object]) -> bool:
    """Whether an object is neither an envelope nor another wrapper of rows."""
    is_envelope = "op" in record and len(record.keys() & _ENVELOPE) > 1
    return not (is_envelope or record.keys() == _CONVERTED or _is_of_another_tool(record))


def _is_row_of(record: Mapping[str, object], columns: set[str]) -> bool:
    """Whether an object that looks like an envelope is a row of a table, whose columns have such names themselves."""
    if record.keys() & (columns - {*_MEMBERS}):
        return True
    return any(wrapper <= columns & record.keys() for wrapper in (*_ENVELOPES, _CONVERTED, _TOOLS))


def _is_of_another_tool(record: Mapping[str, object]) -> bool:
    return record.keys() >= _TOOLS
