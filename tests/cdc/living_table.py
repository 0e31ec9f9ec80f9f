"""A table of a PostgreSQL whose shape changes: columns, types, key and name, by the statements of a game."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from tests.cdc.column_kinds import KEY_KINDS, KINDS, Kind, plain

__all__ = ["CHANGES", "Key", "LivingTable", "Row", "TypeChange"]

Key = tuple[Any, ...]
Row = dict[str, Any]
NULL_CHANCE = 0.2
NAMES = ("c0", "c1", "c2", "c3", "c4", "c5", "CamelCase", "select")
"""Names of columns are few, so that a dropped one comes back, perhaps with another type."""

OUTSIDE = 2_000
"""Values of at least so many bytes are stored outside of the row."""


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A change of a column's type; ``is_followed``: every value fits a column of the old type or of a wider one."""

    before: str
    after: str
    using: str
    is_followed: bool = True


CHANGES = (
    TypeChange("smallint", "int", "{}"),
    TypeChange("int", "bigint", "{}"),
    TypeChange("bigint", "int", "({} % 1000)::int"),
    TypeChange("real", "double", "{}"),
    TypeChange("double", "real", "null"),
    TypeChange("numeric", "wide", "{}"),
    TypeChange("wide", "numeric", "round({} % 1000, 2)"),
    TypeChange("varchar", "text", "{}"),
    TypeChange("text", "varchar", "left({}, 20)"),
    TypeChange("moment_millis", "moment", "{}"),
    TypeChange("moment", "moment_millis", "{}"),
    TypeChange("uuid", "text", "{}::text"),
    TypeChange("mood", "text", "{}::text"),
    TypeChange("int", "text", "{}::text", is_followed=False),
    TypeChange("text", "int", "length({})", is_followed=False),
    TypeChange("int", "numeric", "{} % 1000", is_followed=False),
    TypeChange("int", "boolean", "{} > 0", is_followed=False),
    TypeChange("boolean", "int", "{}::int", is_followed=False),
    TypeChange("day", "moment", "{}::timestamp", is_followed=False),
    TypeChange("instant", "moment", "{} at time zone 'UTC'", is_followed=False),
    TypeChange("text", "bytes", "convert_to({}, 'UTF8')", is_followed=False),
    TypeChange("ints", "texts", "{}::text[]", is_followed=False),
)


@dataclass
class LivingTable:
    """``key`` and ``others`` are columns by name, each with its kind. ``locked`` rows belong to an open transaction."""

    schema: str
    name: str
    key: dict[str, Kind]
    others: dict[str, Kind]
    required: set[str]
    is_full: bool
    locked: set[Key] = field(default_factory=set)

    @classmethod
    def drawn(
        cls, chance: random.Random, schema: str, name: str, kinds: Sequence[str], *, may_lack_key: bool
    ) -> LivingTable:
        """Draw a table of a few columns of these kinds."""
        has_key = not (may_lack_key and chance.random() < 0.15)
        keys = chance.sample(sorted(KEY_KINDS), chance.choice((1, 1, 2))) if has_key else []
        names = chance.sample(NAMES, chance.randint(1, 5))
        others = {
            each: KINDS[chance.choice([kind for kind in kinds if has_key or "ARRAY" not in KINDS[kind].ours])]
            for each in names
        }
        return cls(
            schema,
            name,
            {f"k_{kind}": KEY_KINDS[kind] for kind in keys},
            others,
            {each for each in names if chance.random() < 0.2},
            is_full=not has_key or chance.random() < 0.3,
        )

    @property
    def columns(self) -> dict[str, Kind]:
        return {**self.key, **self.others}

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def create(self, database: psycopg.Connection[Any]) -> None:
        parts = [
            sql.SQL("{} {}{}").format(
                sql.Identifier(name),
                sql.SQL(kind.postgres),
                sql.SQL(" not null" if name in self.required else ""),
            )
            for name, kind in self.columns.items()
        ]
        if self.key:
            parts.append(sql.SQL("primary key ({})").format(sql.SQL(", ").join(map(sql.Identifier, self.key))))
        database.execute(sql.SQL("create table {} ({})").format(self.identifier, sql.SQL(", ").join(parts)))
        for name in self.others:
            self._store_outside(database, name)
        self.set_identity(database, is_full=self.is_full)

    def drop(self, database: psycopg.Connection[Any]) -> None:
        database.execute(sql.SQL("drop table {}").format(self.identifier))

    def truncate(self, database: psycopg.Connection[Any]) -> None:
        database.execute(sql.SQL("truncate {}").format(self.identifier))

    # Its shape.

    def set_identity(self, database: psycopg.Connection[Any], *, is_full: bool) -> None:
        self._alter(database, sql.SQL("replica identity full" if is_full else "replica identity default"))
        self.is_full = is_full

    def rename(self, database: psycopg.Connection[Any], name: str) -> None:
        self._alter(database, sql.SQL("rename to {}").format(sql.Identifier(name)))
        self.name = name

    def free_names(self) -> list[str]:
        """Return names for a new column."""
        return [name for name in NAMES if name not in self.others]

    def add_column(self, database: psycopg.Connection[Any], name: str, kind: Kind, default: Any = None) -> None:
        """Add a column, with a default for rows that are there already and for new ones unless it is None."""
        definition = sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind.postgres))
        if default is not None:
            definition += sql.SQL(" default ({})::{}").format(sql.Literal(default), sql.SQL(kind.postgres))
        self._alter(database, sql.SQL("add column ") + definition)
        self.others[name] = kind
        self._store_outside(database, name)

    def drop_column(self, database: psycopg.Connection[Any], name: str) -> None:
        self._alter(database, sql.SQL("drop column {}").format(sql.Identifier(name)))
        del self.others[name]
        self.required.discard(name)

    def rename_column(self, database: psycopg.Connection[Any], old: str, new: str) -> None:
        self._alter(database, sql.SQL("rename column {} to {}").format(sql.Identifier(old), sql.Identifier(new)))
        self.others = {new if name == old else name: kind for name, kind in self.others.items()}
        if old in self.required:
            self.required = {new if name == old else name for name in self.required}

    def change_type(self, database: psycopg.Connection[Any], name: str, change: TypeChange) -> None:
        kind = KINDS[change.after]
        using = sql.SQL(change.using).format(sql.Identifier(name)) if "{}" in change.using else sql.SQL(change.using)
        if name in self.required:
            self.set_required(database, name, is_required=False)
        column = sql.Identifier(name)
        self._alter(database, sql.SQL("alter column {} drop default").format(column))
        self._alter(database, sql.SQL("alter column {} type {} using {}").format(column, sql.SQL(kind.postgres), using))
        self.others[name] = kind
        self._store_outside(database, name)

    def set_required(self, database: psycopg.Connection[Any], name: str, *, is_required: bool) -> None:
        what = sql.SQL("alter column {} {} not null").format(
            sql.Identifier(name), sql.SQL("set" if is_required else "drop")
        )
        self._alter(database, what)
        (self.required.add if is_required else self.required.discard)(name)

    def change_key(self, database: psycopg.Connection[Any], name: str) -> None:
        """Make a new column of numbers the key instead of the old one, which stays as columns."""
        (old,) = database.execute(
            "select conname from pg_constraint where conrelid = %s::regclass and contype = 'p'",
            [f'"{self.schema}"."{self.name}"'],
        ).fetchone() or (None,)
        self._alter(database, sql.SQL("drop constraint {}").format(sql.Identifier(str(old))))
        for each in self.key:
            self._alter(database, sql.SQL("alter column {} drop not null").format(sql.Identifier(each)))
        self._alter(database, sql.SQL("add column {} serial primary key").format(sql.Identifier(name)))
        self.others = {**self.key, **self.others}
        self.key = {name: KEY_KINDS["int"]}

    def _store_outside(self, database: psycopg.Connection[Any], name: str) -> None:
        """Store long values of a column outside of its rows, uncompressed."""
        if self.others[name].is_long:
            self._alter(database, sql.SQL("alter column {} set storage external").format(sql.Identifier(name)))

    def _alter(self, database: psycopg.Connection[Any], what: sql.Composable) -> None:
        database.execute(sql.SQL("alter table {} {}").format(self.identifier, what))

    # Its rows.

    def rows(self, database: psycopg.Connection[Any]) -> list[Row]:
        """Return all rows."""
        return [
            self._row(each)
            for each in database.execute(sql.SQL("select {} from {}").format(self._listed, self.identifier))
        ]

    def key_of(self, row: Mapping[str, Any]) -> Key:
        return tuple(row[name] for name in self.key)

    def free_rows(self, database: psycopg.Connection[Any]) -> list[Row]:
        """Return the rows that nobody has locked, in an order of their own; without a key, each with its ``ctid``."""
        listed = self._listed if self.key else sql.SQL("{}, ctid::text").format(self._listed)
        found = database.execute(sql.SQL("select {} from {}").format(listed, self.identifier)).fetchall()
        names = [*self.columns] if self.key else [*self.columns, "ctid"]
        rows = [dict(zip(names, map(plain, each), strict=True)) for each in found]
        return sorted((each for each in rows if not self.key or self.key_of(each) not in self.locked), key=repr)

    def insert(self, database: psycopg.Connection[Any], values: Row) -> Row:
        """Insert a row; return it as the database has it, with its defaults."""
        names = sql.SQL(", ").join(map(sql.Identifier, values))
        typed = sql.SQL(", ").join(map(self._typed, values))
        query = sql.SQL("insert into {} ({}) values ({}) returning {}").format(
            self.identifier, names, typed, self._listed
        )
        (row,) = database.execute(query, list(values.values())).fetchall()
        return self._row(row)

    def update(self, database: psycopg.Connection[Any], row: Row, changed: Row) -> Row:
        """Change columns of one row; return the new one."""
        sets = [sql.SQL("{} = {}").format(sql.Identifier(name), self._typed(name)) for name in changed]
        where, parameters = self._where(row)
        query = sql.SQL("update {} set {} where {} returning {}").format(
            self.identifier, sql.SQL(", ").join(sets), where, self._listed
        )
        (new,) = database.execute(query, [*changed.values(), *parameters]).fetchall()
        return self._row(new)

    def delete(self, database: psycopg.Connection[Any], row: Row) -> None:
        where, parameters = self._where(row)
        database.execute(sql.SQL("delete from {} where {}").format(self.identifier, where), parameters)

    def unsent(self, old: Row, changed: Iterable[str]) -> set[str]:
        """Return the columns that an update with the default identity leaves out: long, and not set."""
        if self.is_full:
            return set()
        return {
            name
            for name, kind in self.others.items()
            if kind.is_long and name not in changed and _size(old[name]) >= OUTSIDE
        }

    def new_key(self, chance: random.Random, taken: Iterable[Key]) -> Key | None:
        """Return a key that no row has, or None after a few attempts."""
        occupied = {*taken, *self.locked}
        drawn = (tuple(plain(kind.draw(chance)) for kind in self.key.values()) for _ in range(10))
        return next((each for each in drawn if each not in occupied), None)

    def values(self, chance: random.Random, names: Iterable[str]) -> Row:
        """Draw values of some columns."""
        return {
            name: None
            if name not in self.required and chance.random() < NULL_CHANCE
            else self.columns[name].draw(chance)
            for name in names
        }

    @property
    def _listed(self) -> sql.Composed:
        return sql.SQL(", ").join(
            sql.SQL(kind.select).format(sql.Identifier(name)) for name, kind in self.columns.items()
        )

    def _row(self, values: Sequence[Any]) -> Row:
        return dict(zip(self.columns, map(plain, values), strict=True))

    def _where(self, row: Row) -> tuple[sql.Composed, list[Any]]:
        if not self.key:
            return sql.SQL("ctid = {}::tid").format(sql.Placeholder()), [row["ctid"]]
        parts = [sql.SQL("{} = {}").format(sql.Identifier(name), self._typed(name)) for name in self.key]
        return sql.SQL(" and ").join(parts), [row[name] for name in self.key]

    def _typed(self, name: str) -> sql.Composed:
        return sql.SQL("%s::{}").format(sql.SQL(self.columns[name].postgres))


def _size(value: Any) -> int:
    match value:
        case str():
            return len(value.encode())
        case bytes():
            return len(value)
        case tuple():
            return sum(8 if isinstance(each, int) else _size(each) for each in value)
    return 0
