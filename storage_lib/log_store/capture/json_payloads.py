"""Separates the schema and the payload of JSON records, as Kafka Connect's converter writes them.

    {"schema":{...},"payload":{...}}

The records of one version of a table begin with the same bytes, so a schema is parsed once per batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from storage_lib.schema.encoding.varint_columns import Int64s

_START = re.compile(r'\s*\{\s*"schema"\s*:')
_PAYLOAD = re.compile(r',\s*"payload"\s*:')


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPayloads:
    """JSON values with one schema; ``indices`` are their records in the batch, ``texts`` strings without nulls.

    ``are_messages``: they are about no row, although no schema says so.
    """

    indices: Int64s
    texts: pa.Array
    schema: Mapping[str, Any] | None
    are_messages: bool = False


def payloads(texts: pa.Array) -> list[JsonPayloads]:
    """Group records (strings without nulls) by schema. Raises ``ValueError`` for one without schema and payload."""
    found: list[JsonPayloads] = []
    left = np.arange(len(texts))
    while len(left):
        rest = texts.take(pa.array(left))
        head = _head(rest[0].as_py())
        if head is None:
            # All at once, so that the others are not searched again for each of them.
            is_headless = np.array([_head(text) is None for text in rest.to_pylist()])
            found += _spelled_out(left[is_headless], rest.filter(pa.array(is_headless)))
            left = left[~is_headless]
            continue
        alike = pc.and_(pc.starts_with(rest, head), pc.ends_with(rest, "}"))
        mine = rest.filter(alike)
        is_alike = alike.to_numpy(zero_copy_only=False)
        # The last byte closes the object that has schema and payload.
        inner = pc.binary_slice(mine.cast(pa.binary()), len(head.encode()), -1).cast(pa.string())
        found.append(JsonPayloads(indices=left[is_alike], texts=inner, schema=_schema(head)))
        left = left[~is_alike]
    return found


def _head(text: str) -> str | None:
    """Return the text up to its payload, or None for a record of another form, such as one whose payload is first."""
    payload = _PAYLOAD.search(text)
    if payload is None or not _START.match(text) or not text.endswith("}"):
        return None
    head = text[: payload.end()]
    try:
        _schema(head)
    except ValueError:
        return None
    return head


@lru_cache(maxsize=256)
def _schema(head: str) -> Mapping[str, Any] | None:
    schema: Mapping[str, Any] | None = json.loads(_PAYLOAD.sub("", _START.sub("", head, count=1), count=1))
    return schema


def _spelled_out(indices: Int64s, texts: pa.Array) -> list[JsonPayloads]:
    """Group records that have to be parsed one by one."""
    groups: dict[str, tuple[Mapping[str, Any] | None, list[int], list[str]]] = {}
    for index, text in zip(indices.tolist(), texts.to_pylist(), strict=True):
        record = json.loads(text)
        if not isinstance(record, dict) or not record.keys() >= {"schema", "payload"}:
            message = (
                "it is not an object of schema and payload, as Kafka Connect's JsonConverter writes with "
                "schemas.enable=true; for records without a schema use the format without -schema"
            )
            raise ValueError(message)
        _, places, inner = groups.setdefault(json.dumps(record["schema"]), (record["schema"], [], []))
        places.append(index)
        inner.append(json.dumps(record["payload"]))
    return [
        JsonPayloads(indices=np.array(places), texts=pa.array(inner, pa.string()), schema=schema)
        for schema, places, inner in groups.values()
    ]
