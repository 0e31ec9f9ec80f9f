"""Convert types to and from JSON values in schema files (docs/format.md, 1.3) and SQL text.

schema file         "BIGINT NOT NULL", {"type": "ARRAY NOT NULL", "element": "INT"}, {"type": "ROW", "fields": [...]}
SQL                 BIGINT NOT NULL, ARRAY<INT> NOT NULL, MAP<STRING, INT>, ROW<a INT, b ARRAY<STRING>>
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, parse_data_type
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType


def type_to_json(of: DataType) -> object:
    """Convert a type for a schema file: text for a scalar type, an object for a nested one."""
    match of:
        case ArrayType():
            return {"type": _word("ARRAY", of), "element": type_to_json(of.element)}
        case MultisetType():
            return {"type": _word("MULTISET", of), "element": type_to_json(of.element)}
        case MapType():
            return {"type": _word("MAP", of), "key": type_to_json(of.key), "value": type_to_json(of.value)}
        case RowType():
            return {"type": _word("ROW", of), "fields": [field_to_json(each) for each in of.fields]}
        case _:
            return str(of)


def type_from_json(value: object) -> DataType:
    """Parse the output of ``type_to_json``, and the equivalent from other engines.

    Raises ``InvalidInputError`` for unsupported types, ``KeyError`` or ``TypeError`` for invalid ones.
    """
    if isinstance(value, str):
        return parse_data_type(value)
    if not isinstance(value, Mapping):
        message = f"{value!r} is not a column type"
        raise TypeError(message)
    words = str(value["type"]).upper().split()
    nullable = words[1:] != ["NOT", "NULL"]
    match words[0]:
        case "ARRAY":
            return ArrayType(nullable, element=type_from_json(value["element"]))
        case "MULTISET":
            return MultisetType(nullable, element=type_from_json(value["element"]))
        case "MAP":
            return MapType(nullable, key=type_from_json(value["key"]), value=type_from_json(value["value"]))
        case "ROW":
            return RowType(nullable, fields=tuple(field_from_json(each) for each in value["fields"]))
        case _:
            # Vectors and future types: the scalar parser reports the supported ones.
            return parse_data_type(words[0])


def field_to_json(each: DataField) -> dict[str, object]:
    """Convert a column or a ROW field for a schema file."""
    value: dict[str, object] = {"id": each.id, "name": each.name, "type": type_to_json(each.type)}
    if each.description is not None:
        value["description"] = each.description
    if each.default_value is not None:
        value["defaultValue"] = each.default_value
    return value


def field_from_json(value: Mapping[str, object]) -> DataField:
    """Parse a column or a ROW field. Raises ``InvalidInputError``, naming the field, for an unsupported type."""
    name = str(value["name"])
    try:
        data_type = type_from_json(value["type"])
    except InvalidInputError as error:
        message = f"column {name!r}: {error}"
        raise InvalidInputError(message) from error
    description, default = value.get("description"), value.get("defaultValue")
    return DataField(
        id=int(str(value["id"])),
        name=name,
        type=data_type,
        description=None if description is None else str(description),
        default_value=None if default is None else str(default),
    )


def parse_type(text: str) -> DataType:
    """Parse SQL text, including nested types; ROW fields get the id -1.

    Raises ``InvalidInputError`` for an invalid type.
    """
    match = _NESTED.fullmatch(text)
    if match is None:
        return parse_data_type(text)
    parts = _split_at_commas(match["inside"], text)
    nullable = match["not_null"] is None
    match match["word"].upper(), parts:
        case "ARRAY", [element]:
            return ArrayType(nullable, element=parse_type(element))
        case "MULTISET", [element]:
            return MultisetType(nullable, element=parse_type(element))
        case "MAP", [key, value]:
            return MapType(nullable, key=parse_type(key), value=parse_type(value))
        case "ROW" | "STRUCT", fields:
            return RowType(nullable, fields=tuple(_parse_field(each, text) for each in fields))
        case _:
            raise _misspelled(text)


def parse_columns(text: str) -> list[tuple[str, DataType]]:
    """Parse ``id BIGINT NOT NULL, tags ARRAY<STRING>`` to names and types. Raises ``InvalidInputError``."""
    fields = [_parse_field(part, text) for part in _split_at_commas(text, text)] if text.strip() else []
    return [(each.name, each.type) for each in fields]


_NESTED = re.compile(
    r"\s*(?P<word>ARRAY|MULTISET|MAP|ROW|STRUCT)\s*<(?P<inside>.*)>(?:\s+(?:(?P<not_null>NOT\s+NULL)|NULL))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_FIELD = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^\s`:]+))\s*:?\s*(?P<type>\S.*)", re.DOTALL)
_BRACKETS = {"<": 1, "(": 1, ">": -1, ")": -1}


def _split_at_commas(inside: str, text: str) -> list[str]:
    """Split at commas that are not inside brackets or back quotes."""
    parts, depth, start, is_quoted = [], 0, 0, False
    for index, letter in enumerate(inside):
        if letter == "`":
            is_quoted = not is_quoted
        elif not is_quoted:
            depth += _BRACKETS.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append(inside[start:index])
                start = index + 1
    if depth != 0 or is_quoted:
        raise _misspelled(text)
    return [*parts, inside[start:]]


def _parse_field(part: str, text: str) -> DataField:
    match = _FIELD.fullmatch(part)
    if match is None:
        raise _misspelled(text)
    name = match["quoted"].replace("``", "`") if match["quoted"] else match["plain"]
    return DataField(id=-1, name=name, type=parse_type(match["type"]))


def _misspelled(text: str) -> InvalidInputError:
    message = (
        f"column type {text!r} can't be read; write ARRAY<type>, MAP<type, type>, MULTISET<type> or "
        "ROW<name type, name type>, with NOT NULL behind a type that has no nulls"
    )
    return InvalidInputError(message)


def _word(word: str, of: DataType) -> str:
    return word if of.nullable else f"{word} NOT NULL"
