"""The tables of the interop suite; a new kind, type or format of table is one more entry.

Every table has the columns ``day`` (the partition, if any) and ``id`` (the key, with ``day``, if any), then those of
its case, each with a few values that the rows cycle through.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.file_store.test_other_engines import SCALARS
from tests.support.variants import number, object_of, text

PLAIN: dict[str, tuple[str, Sequence[Any]]] = {
    "name": ("STRING", ["first", None, "", "héllo wörld ☃, longer than sixteen"]),
    "amount": ("BIGINT", [1, -5, None, 2**40, 0]),
    "price": ("DECIMAL(10, 2)", [Decimal("1.50"), Decimal("-0.01"), None]),
}
NESTED: dict[str, tuple[str, Sequence[Any]]] = {
    "list": ("ARRAY<STRING>", [["x", None, ""], [], None]),
    "map": ("MAP<STRING, INT>", [[("k", 1), ("l", None)], [], None]),
    "row": (
        "ROW<x INT, y ARRAY<DECIMAL(10, 2)>>",
        [{"x": 1, "y": [Decimal("1.50"), None]}, {"x": None, "y": []}, None],
    ),
    "lists": ("ARRAY<ARRAY<BIGINT>>", [[[1, 2], [], None], None]),
    "rows": ("ARRAY<ROW<a INT, b STRING>>", [[{"a": 1, "b": "one"}, {"a": None, "b": None}], []]),
}
EVERY_TYPE: dict[str, tuple[str, Sequence[Any]]] = {
    **{f"c{index}": (spelled, values) for index, (spelled, values) in enumerate(SCALARS.items())},
    **NESTED,
}
OF_ORC = {
    name: (spelled, [value for value in values if not isinstance(value, dt.datetime) or value.year > 1970])
    for name, (spelled, values) in EVERY_TYPE.items()
}
"""Without timestamps before 1970, which some ORC readers return wrongly; this library refuses to write them."""
OF_AVRO = {name: (spelled, values[:1] if name == "row" else values) for name, (spelled, values) in EVERY_TYPE.items()}
"""One row value only: pypaimon-rust 0.4.0 reads an empty list in a row as null in some files; Java and we do not."""
RARE: dict[str, tuple[str, Sequence[Any]]] = {
    "time": ("TIME(3)", [dt.time(23, 59, 59, 999000), dt.time(0), None]),
    "fixed": ("BINARY(3)", [b"\x00\x01\xff", None]),
    "local": (
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC), None],
    ),
}
COUNTED: dict[str, tuple[str, Sequence[Any]]] = {
    "counted": ("MULTISET<STRING>", [[("a", 2), ("b", 1)], [], None]),
}


VARIANTS: dict[str, tuple[str, Sequence[Any]]] = {
    "v": ("VARIANT", [object_of("key", 7), None, text("text")]),
    "list": ("ARRAY<VARIANT>", [[number(1), None], [], None]),
    "row": ("ROW<a INT, v VARIANT>", [{"a": 1, "v": number(-1)}, {"a": None, "v": None}]),
}


@dataclass(frozen=True, kw_only=True)
class TableCase:
    """Kind of table. ``without``: unsupported operations. ``not_by``: engines that must not write to it, with reasons.

    ``is_seen_when_compacted``: other engines do not read rows before a compaction, as in Paimon.
    """

    columns: Mapping[str, tuple[str, Sequence[Any]]] = field(default_factory=lambda: PLAIN)
    has_key: bool = True
    is_partitioned: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    lives: tuple[str, ...] = ("made by us", "made by Java", "made by Flink")
    is_seen_when_compacted: bool = False
    not_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, str]:
        """All columns in order, with their SQL types."""
        return {"day": "STRING", "id": "BIGINT", **{name: spelled for name, (spelled, _) in self.columns.items()}}

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Primary key, including the partition column."""
        return ("day", "id") if self.has_key else ()

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Partition columns, if any."""
        return ("day",) if self.is_partitioned else ()

    def row(self, day: str, number: int, turn: int) -> tuple[Any, ...]:
        """Return a row with the key (``day``, ``number``); number and turn determine the values."""
        values = (samples[(number * 3 + turn) % len(samples)] for _, samples in self.columns.values())
        return (day, number, *values)


NO_DELETES = frozenset({"delete"})
APPENDS_ONLY = frozenset({"update", "delete"})
BY_ALL = ("made by us", "made by Java", "made by pypaimon", "made by Flink")
BY_FLINK = ("made by Flink",)
NOT_BY_FLINK = ("made by us", "made by Java")
GROUPS: dict[str, tuple[str, Sequence[Any]]] = {
    "g": ("BIGINT", [1, 3, None, 2]),
    "a": ("STRING", ["x", None, "z"]),
    "h": ("INT", [5, 4, None]),
    "b": ("DECIMAL(10, 2)", [Decimal("1.50"), None]),
    "total": ("BIGINT", [1, None, 7]),
}
AGGREGATED: dict[str, tuple[str, Sequence[Any]]] = {
    "summed": ("BIGINT", [1, -5, None, 2**40]),
    "summed_decimal": ("DECIMAL(12, 2)", [Decimal("1.50"), None, Decimal("-0.25")]),
    "highest": ("INT", [3, None, 9]),
    "lowest": ("STRING", ["b", "a", None]),
    "newest": ("STRING", ["x", None, "z"]),
    "newest_known": ("STRING", ["x", None, "z"]),
    "every": ("BOOLEAN", [True, None, False]),
    "listed": ("STRING", ["p", None, "q"]),
}
AGGREGATION = {
    "merge-engine": "aggregation",
    "fields.summed.aggregate-function": "sum",
    "fields.summed_decimal.aggregate-function": "sum",
    "fields.highest.aggregate-function": "max",
    "fields.lowest.aggregate-function": "min",
    "fields.newest.aggregate-function": "last_value",
    "fields.newest_known.aggregate-function": "last_non_null_value",
    "fields.every.aggregate-function": "bool_and",
    "fields.listed.aggregate-function": "listagg",
}
OF_LENGTH: dict[str, tuple[str, Sequence[Any]]] = {
    "short": ("CHAR(4)", ["ab", "four", None]),
    "longer": ("VARCHAR(9)", ["ab  ", "", None, "nine char"]),
    "bytes": ("VARBINARY(4)", [b"", b"\x00\xff", None]),
}

TABLES: dict[str, TableCase] = {
    "deduplicate": TableCase(lives=BY_ALL),
    "deduplicate, leveled": TableCase(
        options={"compaction.strategy": "leveled", "compaction.level0-file-num-trigger": "2"}
    ),
    "deduplicate by sequence.field": TableCase(options={"sequence.field": "amount"}),
    "deduplicate, deletion vectors": TableCase(
        options={"deletion-vectors.enabled": "true"}, is_seen_when_compacted=True
    ),
    "every scalar and nested type": TableCase(columns=EVERY_TYPE, is_partitioned=False),
    "every scalar and nested type, ORC": TableCase(columns=OF_ORC, options={"file.format": "orc"}),
    "every scalar and nested type, Avro": TableCase(columns=OF_AVRO, options={"file.format": "avro"}),
    "TIME, BINARY and TIMESTAMP_LTZ(3)": TableCase(columns=RARE),
    "MULTISET": TableCase(
        columns=COUNTED,
        lives=("made by us", "made by Flink"),
        not_by={
            "rust": "writes keys that may be null, which readers built on Arrow's C++ can't read",
            "pypaimon": "does not support the type",
        },
    ),
    "VARIANT": TableCase(columns=VARIANTS, options={"file.format": "parquet"}, lives=NOT_BY_FLINK),
    "VARIANT, append-only": TableCase(
        columns=VARIANTS,
        has_key=False,
        options={"write-mode": "append-only"},
        without=APPENDS_ONLY,
        lives=NOT_BY_FLINK,
    ),
    "partial-update": TableCase(options={"merge-engine": "partial-update"}, without=NO_DELETES, lives=BY_ALL),
    "partial-update, sequence groups": TableCase(
        columns=GROUPS,
        options={
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "a",
            "fields.h.sequence-group": "b,total",
            "fields.total.aggregate-function": "sum",
        },
        without=NO_DELETES,
    ),
    "aggregation": TableCase(
        columns=AGGREGATED,
        options=AGGREGATION,
        without=NO_DELETES,
    ),
    "first-row": TableCase(options={"merge-engine": "first-row"}, without=NO_DELETES, is_seen_when_compacted=True),
    "partial-update, removing": TableCase(
        options={"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        lives=BY_FLINK,
    ),
    "default values": TableCase(options={"fields.amount.default-value": "7"}, lives=BY_FLINK),
    "aggregation, removing": TableCase(
        columns=AGGREGATED,
        options={**AGGREGATION, "aggregation.remove-record-on-delete": "true"},
        lives=BY_FLINK,
    ),
    "dynamic buckets": TableCase(options={"bucket": "-1", "dynamic-bucket.target-row-num": "3"}, lives=BY_FLINK),
    "CHAR, VARCHAR and VARBINARY": TableCase(columns=OF_LENGTH, lives=BY_FLINK),
    "CHAR, VARCHAR and VARBINARY, ORC": TableCase(columns=OF_LENGTH, options={"file.format": "orc"}, lives=BY_FLINK),
    "value counts": TableCase(has_key=False, without=frozenset({"update"}), lives=("made by us",)),
    "value counts by a bucket-key": TableCase(
        has_key=False,
        options={"bucket": "2", "bucket-key": "id"},
        without=frozenset({"update"}),
        lives=("made by us",),
    ),
    "append-only": TableCase(has_key=False, options={"write-mode": "append-only"}, without=APPENDS_ONLY, lives=BY_ALL),
    "append-only in buckets": TableCase(
        has_key=False,
        options={"write-mode": "append-only", "bucket": "2", "bucket-key": "id"},
        without=APPENDS_ONLY,
    ),
    "append-only, every scalar and nested type": TableCase(
        columns=EVERY_TYPE, has_key=False, options={"write-mode": "append-only"}, without=APPENDS_ONLY
    ),
    "append-only, every scalar and nested type, Avro": TableCase(
        columns=OF_AVRO,
        has_key=False,
        options={"write-mode": "append-only", "file.format": "avro"},
        without=APPENDS_ONLY,
    ),
    "append-only, every scalar and nested type, ORC": TableCase(
        columns=OF_ORC,
        has_key=False,
        options={"write-mode": "append-only", "file.format": "orc"},
        without=APPENDS_ONLY,
    ),
}
