"""Random rows of a table and of its source, with differences that are planted and therefore known."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


@dataclass(frozen=True)
class PlantedType:
    """A type of the table's columns, other types that have its values, and how to draw a value."""

    ours: pa.DataType
    source: tuple[pa.DataType, ...]
    postgres: tuple[str, ...]


TYPES = {
    "boolean": PlantedType(pa.bool_(), (pa.bool_(),), ("boolean",)),
    "int": PlantedType(
        pa.int32(), (pa.int64(), pa.int32(), pa.decimal128(20, 0)), ("integer", "bigint", "numeric(20, 4)")
    ),
    "long": PlantedType(pa.int64(), (pa.int64(), pa.decimal128(24, 2)), ("bigint", "numeric")),
    "decimal": PlantedType(
        pa.decimal128(9, 2), (pa.decimal128(9, 2), pa.decimal128(18, 6)), ("numeric(9, 2)", "numeric", "text")
    ),
    "float": PlantedType(pa.float32(), (pa.float32(), pa.float64()), ("real", "double precision")),
    "double": PlantedType(pa.float64(), (pa.float64(),), ("double precision",)),
    "string": PlantedType(
        pa.string(), (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())), ("text", "varchar(90)")
    ),
    "bytes": PlantedType(pa.binary(), (pa.binary(), pa.large_binary()), ("bytea",)),
    "date": PlantedType(pa.date32(), (pa.date32(), pa.date64()), ("date",)),
    "time": PlantedType(pa.time32("ms"), (pa.time32("ms"), pa.time64("us")), ("time",)),
    "moment": PlantedType(pa.timestamp("us"), (pa.timestamp("us"), pa.timestamp("ms")), ("timestamp",)),
    "instant": PlantedType(
        pa.timestamp("us", "UTC"), (pa.timestamp("us", "UTC"), pa.timestamp("ms", "Asia/Tokyo")), ("timestamptz",)
    ),
}
_WORDS = ("", "a", "A", "zebra", "Ärger", "日本", "x y", "it's", '"', "a\\b", "a\nb", "NULL", "0", "1.50")


def drawn(kind: str, chance: Random) -> Any:
    """Draw a value; equal ones are frequent."""
    number = chance.choice((0, 1, -1, chance.randrange(-50, 50), chance.randrange(-(1 << 31), 1 << 31)))
    moment = datetime(2000, 1, 1) + timedelta(milliseconds=number)  # noqa: DTZ001  a local time
    values: dict[str, Any] = {
        "boolean": chance.random() < 0.5,
        "int": number,
        "long": number << chance.choice((0, 31)),
        "decimal": Decimal(number % 1_000_000_000 - 500_000_000).scaleb(-2),
        "float": chance.choice((0.5 * (number % 1000), float("nan"), float("inf"), 0.0, -0.0)),
        "double": chance.choice((number / 7, float("nan"), float("-inf"), 0.0, -0.0, 1e-300)),
        "string": chance.choice(_WORDS) * chance.choice((1, 1, 3)),
        "bytes": chance.randbytes(chance.choice((0, 1, 9))),
        "date": date(2000, 1, 1) + timedelta(days=number % 200_000 - 100_000),
        "time": (datetime(2000, 1, 1) + timedelta(milliseconds=number % 86_400_000)).time(),  # noqa: DTZ001
        "moment": moment,
        "instant": moment.replace(tzinfo=UTC),
    }
    return values[kind]


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal; NaN equals NaN."""
    if first is None or second is None:
        return first is second
    return bool(first == second) or (first != first and second != second)  # noqa: PLR0124


@dataclass
class Planted:
    """Rows of both sides, and what distinguishes them."""

    chance: Random
    key_kinds: dict[str, str]
    value_kinds: dict[str, str]
    ours: list[Row] = field(default_factory=list)
    source: list[Row] = field(default_factory=list)
    missing: list[tuple[Any, ...]] = field(default_factory=list)
    extra: list[tuple[Any, ...]] = field(default_factory=list)
    different: dict[tuple[Any, ...], set[str]] = field(default_factory=dict)
    repeated: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def kinds(self) -> dict[str, str]:
        return self.key_kinds | self.value_kinds

    def key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key_kinds)

    def arrow(self, rows: list[Row], *, of_source: bool) -> pa.Table:
        """Convert rows, the source's to random types that have the same values."""
        columns = {}
        for name, kind in self.kinds.items():
            plain = pa.array([row[name] for row in rows], TYPES[kind].ours)
            type_ = self.chance.choice(TYPES[kind].source) if of_source else TYPES[kind].ours
            columns[name] = plain.cast(type_) if not pa.types.is_dictionary(type_) else plain.dictionary_encode()
        return pa.table(columns)


def planted(chance: Random, *, row_count: int, difference_count: int) -> Planted:
    """Draw columns and rows, and plant about so many differences of each kind."""
    key_kinds = dict(
        zip(
            ("k1", "k2"),
            chance.sample(("int", "long", "string", "date", "moment"), chance.choice((1, 1, 2))),
            strict=False,
        )
    )
    values = chance.choices([*TYPES], k=chance.randrange(1, 6))
    made = Planted(chance, key_kinds, {f"v{place}": kind for place, kind in enumerate(values)})
    rows: dict[tuple[Any, ...], Row] = {}
    for place in range(row_count):
        row = {name: drawn(kind, chance) for name, kind in made.kinds.items()}
        if len(key_kinds) == 1 and "string" in key_kinds.values():
            row["k1"] = f"{row['k1']}{place % 1000}"
        rows.setdefault(made.key(row), row)
        for name in made.value_kinds:
            if chance.random() < 0.1:
                row[name] = None
    for key, row in rows.items():
        fate = chance.random() * row_count
        if fate < difference_count:
            made.missing.append(key)
            made.source.append(row)
        elif fate < 2 * difference_count:
            made.extra.append(key)
            made.ours.append(row)
        elif fate < 3 * difference_count:
            _plant_difference(made, key, row)
        else:
            made.ours.append(row)
            made.source.append(row)
            if fate < 4 * difference_count:
                made.repeated.append(key)
                made.source.append(row)
    chance.shuffle(made.source)
    return made


def _plant_difference(made: Planted, key: tuple[Any, ...], row: Row) -> None:
    other = dict(row)
    for name in made.chance.sample([*made.value_kinds], made.chance.randrange(1, len(made.value_kinds) + 1)):
        other[name] = made.chance.choice((None, drawn(made.value_kinds[name], made.chance)))
    changed = {name for name in made.value_kinds if not same(row[name], other[name])}
    if changed:
        made.different[key] = changed
    made.ours.append(row)
    made.source.append(other)
