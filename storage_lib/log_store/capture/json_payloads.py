"""Separates the schema and the payload of JSON records, as Kafka Connect's converter writes them.

    {"schema":{...},"payload":{...}}

The records of one version of a table begin with the same bytes, so a schema is parsed once per batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from storage_lib.schema.encoding.varint_columns import Int64s

_PAYLOAD_KEY = ',"payload":'
_START = '{"schema":'


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPayloads:
    """JSON values with one schema; ``indices`` are their records in the batch, ``texts`` strings without nulls."""

    indices: Int64s
    texts: pa.Array
    schema: Mapping[str, Any] | None


def payloads(texts: pa.Array) -> list[JsonPayloads]:
    """Group records (strings without nulls) by schema. Raises ``ValueError`` for one without schema and payload."""
    found: list[JsonPayloads] = []
    left = np.arange(len(texts))
    while len(left):
        rest = texts.take(pa.array(left))
        head = _head(rest[0].as_py())
        if head is None:
            found.append(_spelled_out(int(left[0]), rest[0].as_py()))
            left = left[1:]
            continue
        alike = pc.starts_with(rest, head)
        mine = rest.filter(alike)
        is_alike = alike.to_numpy(zero_copy_only=False)
        # The last byte closes the object that has schema and payload.
        inner = pc.binary_slice(mine.cast(pa.binary()), len(head.encode()), -1).cast(pa.string())
        found.append(JsonPayloads(indices=left[is_alike], texts=inner, schema=_schema(head)))
        left = left[~is_alike]
    return found


def _head(text: str) -> str | None:
    """Return the text up to its payload, or None for a spelling of another writer."""
    end = text.find(_PAYLOAD_KEY)
    if not text.startswith(_START) or not text.endswith("}") or end < 0:
        return None
    head = text[: end + len(_PAYLOAD_KEY)]
    try:
        _schema(head)
    except ValueError:
        return None
    return head


@lru_cache(maxsize=256)
def _schema(head: str) -> Mapping[str, Any] | None:
    schema: Mapping[str, Any] | None = json.loads(head[len(_START) : -len(_PAYLOAD_KEY)])
    return schema


def _spelled_out(index: int, text: str) -> JsonPayloads:
    record = json.loads(text)
    if not isinstance(record, dict) or not record.keys() >= {"schema", "payload"}:
        message = (
            "it is not an object of schema and payload, as Kafka Connect's JsonConverter writes with "
            "schemas.enable=true; for records without a schema use the format without -schema"
        )
        raise ValueError(message)
    return JsonPayloads(
        indices=np.array([index]), texts=pa.array([json.dumps(record["payload"])]), schema=record["schema"]
    )
