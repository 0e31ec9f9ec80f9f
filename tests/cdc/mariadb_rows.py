# ruff: noqa: S608 - the names in these statements are our own
"""Rows of a MariaDB as text, and how they compare with those of a table that follows it."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from local_mariadb import LocalMariadb

__all__ = ["differing_columns", "kinds_of", "position_of", "rows_of", "spelled"]

_BINARY = ("binary", "blob", "bit")


def kinds_of(mariadb: LocalMariadb, database: str, table: str) -> dict[str, str]:
    """Return the types of a table's columns, in order."""
    columns = mariadb.query(
        "select column_name, column_type from information_schema.columns "
        f"where table_schema = '{database}' and table_name = '{table}' order by ordinal_position"
    )
    return {each[0]: each[1] for each in columns}


def rows_of(mariadb: LocalMariadb, database: str, table: str, kinds: Mapping[str, str]) -> list[dict[str, str | None]]:
    """Return the rows in the order of the first columns; bytes as hexadecimal digits, bits as a number."""
    listed = ", ".join(f"ifnull(hex({_text(name, kind)}), '-')" for name, kind in kinds.items())
    rows = mariadb.query(f"select {listed} from {table} order by 1", database=database)
    return [{name: _told(value, kinds[name]) for name, value in zip(kinds, row, strict=True)} for row in rows]


def position_of(mariadb: LocalMariadb) -> int:
    """Return the number of the newest transaction, with which its ``gtid`` ends."""
    ((position,),) = mariadb.query("select @@gtid_binlog_pos")
    return int(position.rpartition("-")[2] or 0)


def _text(name: str, kind: str) -> str:
    if kind.startswith("point"):
        return f"astext({name})"
    if kind.startswith("bit"):
        return f"cast({name} as unsigned)"
    return name if any(each in kind for each in _BINARY) else f"convert({name}, char character set utf8mb4)"


def _told(value: str, kind: str) -> str | None:
    if value == "-":
        return None
    if kind.startswith("bit"):
        return str(int(value, 16))
    return value if any(each in kind for each in _BINARY) else bytes.fromhex(value).decode()


def differing_columns(
    mine: Mapping[str, Any], theirs: Mapping[str, str | None], kinds: Mapping[str, str], names: Sequence[str]
) -> list[str]:
    """Return what differs in the row of one key, for messages."""
    pairs = [(name, mine[name], spelled(theirs[name], kinds[name], mine[name])) for name in names]
    return [f"{name}: {ours!r} instead of {value!r}" for name, ours, value in pairs if ours != value]


def spelled(text: str | None, kind: str, like: Any) -> Any:  # noqa: C901, PLR0911  one per type
    """Return a value of the database in the type of the table's value."""
    if text is None:
        return None
    if kind.startswith("bit(") and not isinstance(like, bool):
        # Without zero bytes at the end, in the row that a connector has read; with them in its stream.
        raw = int(text).to_bytes(8, "little")
        return raw[: len(like)] if isinstance(like, bytes) and not any(raw[len(like) :]) else raw
    match like:
        case bool():
            return text != "0"
        case int():
            return int(text)
        case float():
            # The database prints six digits of a FLOAT.
            return like if kind == "float" and f"{like:.5e}" == f"{float(text):.5e}" else float(text)
        case Decimal():
            return Decimal(text)
        case bytes():
            return bytes.fromhex(text)
        case dt.datetime():
            return dt.datetime.fromisoformat(text).replace(tzinfo=like.tzinfo)
        case dt.date():
            return dt.date.fromisoformat(text)
        case dt.time():
            found = dt.time.fromisoformat(text)
            return found.replace(microsecond=found.microsecond // 1000 * 1000)
        case str() if "binary" in kind or "blob" in kind:
            return base64.b64encode(bytes.fromhex(text)).decode()
        case str() if kind.startswith("decimal"):
            return like if Decimal(like) == Decimal(text) else text
    return text
