"""Random lives of tables whose columns change, and a plain model of their rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from storage_lib import AddColumn, AlterType, DropColumn, RenameColumn, SetOption

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

KEYS = 60
TYPES = {
    "flag": "BOOLEAN",
    "tiny": "TINYINT",
    "whole": "INT",
    "single": "FLOAT",
    "double": "DOUBLE",
    "price": "DECIMAL(10, 2)",
    "wide": "DECIMAL(30, 5)",
    "text": "STRING",
    "code": "CHAR(3)",
    "data": "BYTES",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "millis": "TIMESTAMP_LTZ(3)",
    "clock": "TIME(3)",
    "list": "ARRAY<INT>",
    "map": "MAP<STRING, BIGINT>",
    "part": "ROW<a INT, b STRING>",
}
WIDENED = {"tiny": "INT", "whole": "BIGINT", "single": "DOUBLE", "price": "DECIMAL(20, 4)", "code": "STRING"}
KINDS: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ("k",), "bucket": 2},
    "partitioned": {"primary_key": ("p", "k"), "partition_by": ("p",), "bucket": 1},
    "vectors": {"primary_key": ("k",), "bucket": 2, "deletion_vectors__enabled": "true"},
    "appended": {"primary_key": (), "write_mode": "append-only", "bucket": -1},
    "counted": {"primary_key": (), "bucket": 1},
}
VALUES: dict[str, Callable[[Random], Any]] = {
    "BOOLEAN": lambda rng: rng.random() < 0.5,
    "TINYINT": lambda rng: rng.randint(-100, 100),
    "INT": lambda rng: rng.randint(-100, 100),
    "BIGINT": lambda rng: rng.randint(-100, 100),
    "FLOAT": lambda rng: rng.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25]),
    "DOUBLE": lambda rng: rng.choice([0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25]),
    "DECIMAL": lambda rng: Decimal(rng.choice([0, 150, -99999])) / 100,
    "STRING": lambda rng: rng.choice(["", "a", "abc", "ü€"]),
    "CHAR": lambda rng: rng.choice(["", "a", "abc", "ü€"]),
    "BYTES": lambda rng: rng.choice([b"", b"\x00\xff", b"abc"]),
    "DATE": lambda rng: dt.date(rng.choice([1, 1500, 1970, 9999]), 1, 3),
    "TIMESTAMP": lambda rng: dt.datetime(rng.choice([1970, 2024]), 1, 3, 4, 5, 6, 7_089),  # noqa: DTZ001  no zone
    "TIMESTAMP_LTZ": lambda rng: dt.datetime(rng.choice([1970, 2024]), 1, 3, 4, 5, 6, 7_000, dt.UTC),
    "TIME": lambda _: dt.time(4, 5, 6, 7_000),
    "ARRAY": lambda rng: [rng.choice([None, 1]) for _ in range(rng.randint(0, 2))],
    "MAP": lambda rng: [(key, rng.choice([None, 5])) for key in "ab"[: rng.randint(0, 2)]],
    "ROW": lambda rng: {"a": rng.choice([None, 1]), "b": "q"},
}


@dataclass
class Life:
    """A table and its expected rows. ``names`` are the current names of the columns, by their first ones."""

    rng: Random
    table: DynamicTable
    kind: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    added: int = 0

    def append(self) -> None:
        keys = self.rng.sample(range(KEYS), self.rng.randint(1, 25))
        new = [self._row(key) for key in keys]
        if self.table.schema.primary_keys:
            fresh = {(row["p"] if "p" in self.table.schema.primary_keys else None, row["k"]) for row in new}
            keyed = "p" in self.table.schema.primary_keys
            self.rows = [row for row in self.rows if (row["p"] if keyed else None, row["k"]) not in fresh]
        self.rows += new
        self.table.append(pa.Table.from_pylist(new, schema=self.table.schema.arrow_schema))

    def delete(self) -> None:
        if self.kind == "appended":
            return
        low = self.rng.randrange(KEYS)
        self.table.delete(f"k between {low} and {low + 8}")
        self.rows = [row for row in self.rows if not low <= row["k"] <= low + 8]

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.5)

    def change_format(self) -> None:
        self.table = self.table.alter(SetOption("file.format", self.rng.choice(["parquet", "parquet", "orc", "avro"])))

    def add_column(self) -> None:
        self.added += 1
        name = f"more{self.added}"
        self.types[name] = self.rng.choice(["INT", "STRING", "DOUBLE"])
        self.table = self.table.alter(AddColumn(name, self.types[name]))
        for row in self.rows:
            row[name] = None

    def rename_column(self) -> None:
        old = self.rng.choice(["tiny", "text", "list"])
        if self.types.get(old) == TYPES[old]:
            self.added += 1
            new = f"named{self.added}"
            self.table = self.table.alter(RenameColumn(old, new))
            self.types = {new if name == old else name: type_ for name, type_ in self.types.items()}
            for row in self.rows:
                row[new] = row.pop(old)

    def drop_and_add_again(self) -> None:
        if self.types.get("whole") == "INT":
            self.table = self.table.alter(DropColumn("whole")).alter(AddColumn("whole", "INT"))
            for row in self.rows:
                row["whole"] = None

    def widen(self) -> None:
        name = self.rng.choice(list(WIDENED))
        if self.types.get(name) == TYPES[name]:
            self.types[name] = WIDENED[name]
            self.table = self.table.alter(AlterType(name, WIDENED[name]))

    def _row(self, key: int) -> dict[str, Any]:
        values = {name: self._value(type_) for name, type_ in self.types.items()}
        return {"k": key, "p": self.rng.choice(["a", "b", "c/d %"]), **values}

    def _value(self, type_: str) -> Any:
        if self.rng.random() < 0.2:
            return None
        return VALUES[type_.partition("(")[0].partition("<")[0]](self.rng)


STEPS: tuple[Callable[[Life], None], ...] = (
    *[Life.append] * 5,
    *[Life.delete] * 2,
    *[Life.compact] * 3,
    Life.change_format,
    Life.add_column,
    Life.rename_column,
    Life.drop_and_add_again,
    Life.widen,
)


def steps_of(kind: str) -> tuple[Callable[[Life], None], ...]:
    """Return the steps of a table of one of ``KINDS``. A table that counts rows can't be altered."""
    return STEPS if kind != "counted" else (Life.append, Life.delete, Life.compact)
