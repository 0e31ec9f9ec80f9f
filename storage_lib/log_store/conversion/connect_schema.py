"""Types of values by the schema that Kafka Connect's JsonConverter writes into each record (``schemas.enable``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.captured_value_type import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    TEXT,
    Meaning,
    ValueType,
    row_of,
)
from storage_lib.log_store.conversion.semantic_types import with_meaning

_PHYSICAL = {
    "boolean": BOOLEAN,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "float": FLOAT,
    "float32": FLOAT,
    "double": DOUBLE,
    "float64": DOUBLE,
    "string": TEXT,
    "bytes": BYTES,
}


def value_type(schema: Mapping[str, Any]) -> ValueType:
    """Return the type of the values that a Connect schema describes. Raises ``InvalidInputError`` if it is not one."""
    try:
        return with_meaning(_physical(schema), schema.get("name"), schema.get("parameters") or {})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = (
            f"{str(schema)[:200]!r} is not a schema of Kafka Connect ({error!r}); read the topic in its own format"
        )
        raise InvalidInputError(message) from error


def _physical(schema: Mapping[str, Any]) -> ValueType:
    kind = schema["type"]
    match kind:
        case "array":
            return ValueType(meaning=Meaning.ARRAY, element=value_type(schema["items"]))
        case "map":
            key, element = value_type(schema["keys"]), value_type(schema["values"])
            return ValueType(meaning=Meaning.MAP, key=key, element=element)
        case "struct":
            fields = schema.get("fields") or ()
            return row_of({each["field"]: _of_field(each) for each in fields})
        case _:
            return _PHYSICAL[kind]


def _of_field(field: Mapping[str, Any]) -> ValueType:
    comment = field.get("doc")
    return replace(value_type(field), default=field.get("default"), comment=None if comment is None else str(comment))
