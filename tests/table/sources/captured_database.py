"""A database of one table whose connector writes each change as Debezium does, with random settings and statements.

Its rows are the answer that a table which follows the topic has to give.
"""

from __future__ import annotations

import base64
import json
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.support.raw_topic import RawTopic

PLACEHOLDER = "__debezium_unavailable_value"
_CONNECTORS = ("postgresql", "mysql")
_SIMPLE = {
    "id": {"type": "int64", "optional": False},
    "item": {"type": "string", "optional": False},
    "note": {"type": "string", "optional": True},
    "price": {
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    "pic": {"type": "bytes", "optional": True},
}
Row = dict[str, Any]
NONE: frozenset[str] = frozenset()
MISFITS: tuple[Row, ...] = (
    {"note": "z" * 99},
    {"pic": b"far too long" * 9},
    {"price": Decimal("123456789012.50")},
    {"item": "a name that is too long"},
)
"""Values for which a table of VARCHAR(50), VARBINARY(50) and DECIMAL(10, 2) has no room."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the connector writes: drawn once per life."""

    connector: str
    is_full: bool
    """REPLICA IDENTITY FULL, or a database that always logs whole rows."""
    has_schema: bool
    is_flattened: bool
    has_key: bool
    has_tombstones: bool
    rewrites_deletes: bool
    """Flattened only: deletions are records with ``__deleted``, not only tombstones."""

    @property
    def format(self) -> str:
        kind = "debezium-flattened-json" if self.is_flattened else "debezium-json"
        return f"{kind}-schema" if self.has_schema else kind

    @classmethod
    def drawn(cls, chance: random.Random, *, has_key: bool) -> Settings:
        connector = chance.choice(_CONNECTORS)
        is_flattened = has_key and chance.random() < 0.3
        rewrites = chance.random() < 0.5
        return cls(
            connector=connector,
            # A table without a key can only be logged with whole rows.
            is_full=connector == "mysql" or not has_key or chance.random() < 0.4,
            has_schema=chance.random() < 0.5,
            is_flattened=is_flattened,
            has_key=has_key,
            has_tombstones=(is_flattened and not rewrites) or chance.random() < 0.7,
            rewrites_deletes=rewrites,
        )


@dataclass(frozen=True, kw_only=True)
class Written:
    """A record of a key: the source's row after it, None if it is deleted, and the columns that it leaves out."""

    offset: int
    key: int
    row: Row | None
    left_out: frozenset[str] = NONE


@dataclass
class CapturedDatabase:
    """Rows by key, and the topic of their changes, which ``written`` repeats."""

    settings: Settings
    chance: random.Random
    topic: RawTopic
    is_compacted: bool = False
    """Then there is no TRUNCATE, which has no key, and no unchanged value is left out: its record may be gone."""

    misfits: float = 0
    """Share of the rows that have a value which the table can't hold."""

    truncates: bool = True
    moves_at_once: bool = False
    rows: dict[int, Row] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    def statement(self) -> None:
        """Make one random statement."""
        draw = self.chance.random()
        if not self.rows or draw < 0.35:
            self._insert(self._free_key())
        elif draw < 0.75:
            self._update(self.chance.choice(list(self.rows)))
        elif draw < 0.9:
            self._delete(self.chance.choice(list(self.rows)))
        elif draw < 0.97:
            self._move(self.chance.choice(list(self.rows)))
        elif self.truncates and not self.settings.is_flattened and not self.is_compacted:
            self.rows.clear()
            self._write(None, "t", None, None)

    def insert(self) -> None:
        """Insert a row."""
        self._insert(self._free_key())

    def expected(self) -> list[tuple[Any, ...]]:
        """Return the rows as the table has to hold them, sorted."""
        return sorted(tuple(row[name] for name in _SIMPLE) for row in self.rows.values())

    def _free_key(self) -> int:
        return self.chance.choice([key for key in range(40) if key not in self.rows])

    def _drawn(self, key: int) -> Row:
        chance = self.chance
        row = {
            "id": key,
            "item": chance.choice(["tea", "cup", "pot", 'q"u{o}te', "null", "naïve"]),
            "note": chance.choice([None, "x" * 30, "y" * 40, '{"note":null}']),
            "price": chance.choice([None, Decimal("9.50"), Decimal("-0.01"), Decimal("12345678.90")]),
            "pic": chance.choice([None, b"\0\1", b"long" * 9]),
        }
        if chance.random() < self.misfits:
            row |= chance.choice(MISFITS)
        return row

    def _insert(self, key: int) -> None:
        row = self._drawn(key)
        self.rows[key] = row
        self._write(key, self.chance.choice(["c", "c", "r"]), None, row)

    def _update(self, key: int) -> None:
        old = self.rows[key]
        new = {**self._drawn(key)}
        kept = [name for name in ("note", "pic") if old[name] is not None and len(old[name]) > 20]
        toasted = [name for name in kept if self.chance.random() < 0.6]
        new |= {name: old[name] for name in toasted}
        self.rows[key] = new
        self._write(key, "u", old, new, toasted)

    def _delete(self, key: int) -> None:
        old = self.rows.pop(key)
        self._write(key, "d", old, None)
        self._tombstone(key)

    def _move(self, key: int) -> None:
        """Change a row's key, which Debezium writes as a deletion and an insertion, and others as one update."""
        old, to = self.rows.pop(key), self._free_key()
        new = {**old, "id": to}
        self.rows[to] = new
        if self.moves_at_once and self.settings.is_full and not self.settings.is_flattened:
            self._write(to, "u", old, new)
            if to != key:
                self.written.append(Written(offset=self.written[-1].offset, key=key, row=None))
            return
        self._write(key, "d", old, None)
        self._tombstone(key)
        self._write(to, "c", None, new)

    # Records

    def _key(self, key: int | None) -> bytes | None:
        if key is None or not self.settings.has_key:
            return None
        payload = {"id": key}
        if not self.settings.has_schema:
            return _json(payload)
        fields = [{"field": "id", **_SIMPLE["id"]}]
        return _json({"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": payload})

    def _tombstone(self, key: int) -> None:
        if self.settings.has_tombstones and self.settings.has_key:
            self._send(key, None, None)

    def _send(self, key: int | None, value: bytes | None, row: Row | None, left_out: frozenset[str] = NONE) -> None:
        offset = self.topic.tell(self._key(key), value)
        if key is not None:
            self.written.append(Written(offset=offset, key=key, row=row, left_out=left_out))

    def _write(
        self, key: int | None, operation: str, old: Row | None, new: Row | None, toasted: list[str] | None = None
    ) -> None:
        settings = self.settings
        after = None if new is None else self._spelled(new)
        left_out = NONE
        if after is not None and settings.connector == "postgresql" and not (settings.is_full or self.is_compacted):
            left_out = frozenset(toasted or ())
            after |= {name: PLACEHOLDER for name in left_out if name == "note"}
            after |= {name: _base64(PLACEHOLDER.encode()) for name in left_out if name == "pic"}
        before = None if old is None else self._before(old, operation)
        if settings.is_flattened:
            value = self._flattened(operation, before, after)
        else:
            source = {"connector": settings.connector, "name": "shop", "ts_ms": 1, "note": None}
            payload = {"before": before, "after": after, "source": source, "op": operation, "ts_ms": 2}
            schema = [
                *({"field": side, **_struct(optional=True)} for side in ("before", "after")),
                {"field": "op", "type": "string", "optional": False},
            ]
            value = self._value(payload, schema)
        if value is not None:
            self._send(key, value, new, left_out)

    def _flattened(self, operation: str, before: Row | None, after: Row | None) -> bytes | None:
        if operation == "d" and not self.settings.rewrites_deletes:
            return None
        row = before if operation == "d" else after
        payload = {**(row or {}), "__deleted": "true" if operation == "d" else "false"}
        schema = [*_struct(optional=True)["fields"], {"field": "__deleted", "type": "string", "optional": True}]
        return self._value(payload, schema)

    def _before(self, old: Row, operation: str) -> Row | None:
        if self.settings.is_full:
            return self._spelled(old)
        if operation != "d":
            return None
        # What Debezium makes of a row of which PostgreSQL logged only the key.
        return {"id": old["id"], "item": "", "note": None, "price": None, "pic": None}

    def _spelled(self, row: Row) -> Row:
        price = row["price"]
        unscaled = None if price is None else int(price.scaleb(2))
        return {
            **row,
            "price": None if unscaled is None else _base64(unscaled.to_bytes(8, "big", signed=True)),
            "pic": None if row["pic"] is None else _base64(row["pic"]),
        }

    def _value(self, payload: Row, fields: list[Row]) -> bytes:
        if not self.settings.has_schema:
            return _json(payload)
        return _json({"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": payload})


def _struct(*, optional: bool) -> Row:
    fields = [{"field": name, **of} for name, of in _SIMPLE.items()]
    return {"type": "struct", "fields": fields, "optional": optional}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
