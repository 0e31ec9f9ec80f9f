"""A random table of a PostgreSQL, and random statements on it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from tests.cdc.column_kinds import KEY_KINDS, KINDS, Kind, plain

__all__ = ["DrawnTable", "drawn_table"]

Key = tuple[Any, ...]
Statement = tuple[sql.Composed, list[Any]]
NULL_CHANCE = 0.2


@dataclass
class DrawnTable:
    """``key`` and ``others`` are columns by name. Without a key the identity is full: else nothing could be changed."""

    schema: str
    name: str
    key: dict[str, Kind]
    others: dict[str, Kind]
    required: frozenset[str]
    is_full: bool
    locked: set[Key] = field(default_factory=set)
    """Rows of an open transaction, which others must not touch."""

    @property
    def columns(self) -> dict[str, Kind]:
        return {**self.key, **self.others}

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def create(self, database: psycopg.Connection[Any]) -> None:
        """Create the table; long values lie outside the rows, uncompressed."""
        parts = [
            f"{name} {kind.postgres}{' not null' if name in self.required else ''}"
            for name, kind in self.columns.items()
        ]
        if self.key:
            parts.append(f"primary key ({', '.join(self.key)})")
        # psycopg wants literal strings; these are our own names.
        database.execute(sql.SQL("create table {} ({})").format(self.identifier, sql.SQL(", ".join(parts))))
        for name, kind in self.others.items():
            if kind.is_long:
                self._alter(database, sql.SQL("alter column {} set storage external").format(sql.Identifier(name)))
        self.set_identity(database, is_full=self.is_full)

    def set_identity(self, database: psycopg.Connection[Any], *, is_full: bool) -> None:
        self._alter(database, sql.SQL("replica identity full" if is_full else "replica identity default"))
        self.is_full = is_full

    def truncate(self, database: psycopg.Connection[Any]) -> None:
        database.execute(sql.SQL("truncate {}").format(self.identifier))

    def _alter(self, database: psycopg.Connection[Any], what: sql.Composable) -> None:
        database.execute(sql.SQL("alter table {} {}").format(self.identifier, what))

    def rows(self, database: psycopg.Connection[Any]) -> Counter[tuple[Any, ...]]:
        """Return all rows of the database and how often each is there."""
        listed = [sql.SQL(kind.select).format(sql.Identifier(name)) for name, kind in self.columns.items()]
        query = sql.SQL("select {} from {}").format(sql.SQL(", ").join(listed), self.identifier)
        return Counter(plain(row) for row in database.execute(query))

    def keys(self, database: psycopg.Connection[Any]) -> list[Key]:
        """Return the keys of the rows that nobody has locked, in order; without a key, those of all rows."""
        listed = sql.SQL(", ").join(map(sql.Identifier, self.key)) if self.key else sql.SQL("ctid::text")
        found = database.execute(sql.SQL("select {} from {} order by 1").format(listed, self.identifier)).fetchall()
        return sorted((tuple(row) for row in found if tuple(row) not in self.locked), key=repr)

    def insertion(self, chance: random.Random, key: Key) -> Statement:
        drawn = {**dict(zip(self.key, key, strict=True)), **self._values(chance, self.others)}
        typed = sql.SQL(", ").join(self._typed(name) for name in drawn)
        names = sql.SQL(", ").join(map(sql.Identifier, drawn))
        query = sql.SQL("insert into {} ({}) values ({})").format(self.identifier, names, typed)
        return query, list(drawn.values())

    def update(
        self, chance: random.Random, keys: Sequence[Key], new_key: Key | None = None, *, is_whole: bool = False
    ) -> Statement:
        """Change random columns of these rows, and the key if a new one is given; then also all long ones if whole."""
        chosen = chance.sample(list(self.others), chance.randint(1, len(self.others)))
        changed = self._values(chance, {name: self.others[name] for name in chosen})
        if new_key is not None:
            kept = changed if chance.random() < 0.3 else {}
            if is_whole:
                long = {name: kind for name, kind in self.others.items() if kind.is_long}
                kept = {**kept, **self._values(chance, long)}
            changed = {**kept, **dict(zip(self.key, new_key, strict=True))}
        sets = [sql.SQL("{} = {}").format(sql.Identifier(name), self._typed(name)) for name in changed]
        where, parameters = self._where(keys)
        query = sql.SQL("update {} set {} where {}").format(self.identifier, sql.SQL(", ").join(sets), where)
        return query, [*changed.values(), *parameters]

    def deletion(self, keys: Sequence[Key]) -> Statement:
        where, parameters = self._where(keys)
        return sql.SQL("delete from {} where {}").format(self.identifier, where), parameters

    def new_key(self, chance: random.Random, taken: Iterable[Key]) -> Key | None:
        """Return a key that no row has, or None after a few attempts."""
        occupied = {*taken, *self.locked}
        drawn = (tuple(kind.draw(chance) for kind in self.key.values()) for _ in range(10))
        return next((each for each in drawn if not each or each not in occupied), None)

    def _where(self, keys: Sequence[Key]) -> tuple[sql.Composed, list[Any]]:
        names = list(self.key)
        one = (
            sql.SQL(" and ").join(sql.SQL("{} = {}").format(sql.Identifier(name), self._typed(name)) for name in names)
            if names
            else sql.SQL("ctid = %s::tid")
        )
        return sql.SQL(" or ").join([sql.SQL("({})").format(one)] * len(keys)), [part for key in keys for part in key]

    def _typed(self, name: str) -> sql.Composed:
        return sql.SQL("%s::{}").format(sql.SQL(self.columns[name].postgres))

    def _values(self, chance: random.Random, columns: dict[str, Kind]) -> dict[str, Any]:
        return {
            name: None if name not in self.required and chance.random() < NULL_CHANCE else kind.draw(chance)
            for name, kind in columns.items()
        }


def drawn_table(chance: random.Random, schema: str, name: str, *, may_lack_key: bool) -> DrawnTable:
    """Draw a table of up to ten columns."""
    has_key = not (may_lack_key and chance.random() < 0.2)
    keys = chance.sample(sorted(KEY_KINDS), chance.choice((1, 1, 2))) if has_key else []
    others = chance.sample(sorted(KINDS), chance.randint(2, 8))
    key = {f"k_{kind}": KEY_KINDS[kind] for kind in keys}
    columns = {f"c_{kind}": KINDS[kind] for kind in others}
    required = {*key, *(name for name in columns if chance.random() < 0.25)}
    is_full = not has_key or chance.random() < 0.3
    return DrawnTable(schema, name, key, columns, frozenset(required), is_full)
