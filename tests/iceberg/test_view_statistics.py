"""Readers of Iceberg leave out files by the statistics of columns in the view, and never a row."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from storage_lib import AlterType, DynamicTable, open_catalog
from storage_lib.iceberg.encode.column_metrics import column_metrics
from storage_lib.iceberg.encode.partition_record import unscaled
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.table_schema import DataField
from storage_lib.schema.types.type_spelling import parse_type
from tests.iceberg.drawn_views import KEYS, SCALARS, DrawnView, draw_view, move
from tests.support.deep_tests import thinned
from tests.support.iceberg_readers import (
    canonical,
    filtered_by_duckdb,
    metadata_of,
    needs_readers,
    planned_by_pyiceberg,
    view_of,
)

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  a TIMESTAMP has no zone


def metrics_of(of: str, low: object, high: object, *, nulls: int | None = 1, covers_nan: bool = True) -> dict[str, Any]:
    """Return what a manifest says of column 7 of a file with five rows."""
    field = DataField(id=7, name="c", type=parse_type(of))
    stats = ColumnStats(min=low, max=high, null_count=nulls, row_count=5, covers_nan=covers_nan)
    found = column_metrics([field], {"c": stats})
    assert all(each["key"] == 7 for values in found.values() for each in values)
    return {name: values[0]["value"] for name, values in found.items()}


@pytest.mark.parametrize(
    ("of", "low", "high", "lower", "upper"),
    [
        ("BOOLEAN", False, True, b"\0", b"\1"),
        ("TINYINT", -1, 5, struct.pack("<i", -1), struct.pack("<i", 5)),
        ("INT", -(2**31), 2**31 - 1, struct.pack("<i", -(2**31)), struct.pack("<i", 2**31 - 1)),
        ("BIGINT", -(2**63), 7, struct.pack("<q", -(2**63)), struct.pack("<q", 7)),
        ("FLOAT", -0.0, 0.0, struct.pack("<f", -0.0), struct.pack("<f", 0.0)),
        ("DOUBLE", -1.5, 2.0, struct.pack("<d", -1.5), struct.pack("<d", 2.0)),
        ("DATE", date(1969, 12, 31), date(1970, 1, 2), struct.pack("<i", -1), struct.pack("<i", 1)),
        ("DECIMAL(9, 2)", Decimal("-1.28"), Decimal("1.28"), b"\x80", b"\x00\x80"),
        ("DECIMAL(38, 0)", Decimal(-(10**38) + 1), Decimal(0), (1 - 10**38).to_bytes(16, "big", signed=True), b"\0"),
        ("STRING", "", "zebra", b"", b"zebra"),
        ("BYTES", b"", b"\xff\0", b"", b"\xff\0"),
        ("TIMESTAMP(6)", MOMENT, MOMENT, struct.pack("<q", -1), struct.pack("<q", -1)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", *[datetime(1970, 1, 1, tzinfo=UTC)] * 2, bytes(8), bytes(8)),
    ],
)
def test_bounds_are_written_as_iceberg_stores_values(
    of: str, low: object, high: object, lower: bytes, upper: bytes
) -> None:
    found = metrics_of(of, low, high)

    assert (found["lower_bounds"], found["upper_bounds"]) == (lower, upper)
    assert (found["value_counts"], found["null_value_counts"]) == (5, 1)
    assert found.get("nan_value_counts") == (0 if of in ("FLOAT", "DOUBLE") else None)


@pytest.mark.parametrize(
    ("of", "low", "high"),
    [
        ("DOUBLE", None, None),
        ("STRING", "a", "\U0001f600"),
        ("STRING", "\uff00", "\uff01"),
        ("TIMESTAMP(9)", MOMENT, MOMENT),
        ("DECIMAL(9, 2)", Decimal("1.234"), Decimal("1.234")),
    ],
)
def test_bounds_that_may_be_wrong_for_some_reader_are_left_out(of: str, low: object, high: object) -> None:
    found = metrics_of(of, low, high)

    assert found == {"value_counts": 5, "null_value_counts": 1}


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert metrics_of("INT", 1, 2, nulls=None).keys() == {"lower_bounds", "upper_bounds"}
    assert metrics_of("DOUBLE", 1.0, 2.0, covers_nan=False) == {"value_counts": 5, "null_value_counts": 1}
    assert metrics_of("CHAR(3)", "a", "b") == {}
    assert metrics_of("ARRAY<INT>", None, None) == {}


def test_decimals_of_38_digits_are_exact() -> None:
    digits = "12345678901234567890123456789012345678"

    assert unscaled(Decimal(f"-{digits[:36]}.{digits[36:]}"), 2) == -int(digits)
    assert unscaled(Decimal("1E+3"), 2) == 100_000
    assert unscaled(Decimal("1.50"), 1) == 15
    with pytest.raises(ValueError, match=r"1\.23 has more than 1 digits after the point"):
        unscaled(Decimal("1.23"), 1)


@needs_readers
def test_pyiceberg_leaves_out_files_by_each_type_of_column(tmp_path: Path) -> None:
    types = {f"c{place}": of for place, of in enumerate(SCALARS) if of != "STRING"}
    makers = {name: SCALARS[of] for name, of in types.items()}
    table = open_catalog(str(tmp_path / "lake")).create_table(
        "d.t",
        {"id": "BIGINT", **types, "x": "DOUBLE", "y": "INT"},
        primary_key=["id"],
        options={"metadata.iceberg.storage": "table-location", "log.system": "none", "write-only": "true"},
    )
    for part in range(4):
        made = [(n, {name: make(n) for name, make in makers.items()}) for n in range(part * 10, part * 10 + 10)]
        table.append([{"id": n, **row, "x": float(n), "y": n if part < 2 else None} for n, row in made])
    table.append([{"id": 100, **dict.fromkeys(types), "x": float("nan"), "y": 1}])
    table = table.alter(AlterType("y", "BIGINT"))
    metadata = metadata_of(table, 5)

    for name, make in makers.items():
        if types[name] != "BYTES":  # which JSON does not have
            files, rows = planned_by_pyiceberg(metadata, tmp_path, (name, "=", make(15)))
            assert (files, rows.num_rows) == (1, 1), (name, types[name])
        files, rows = planned_by_pyiceberg(metadata, tmp_path, (name, "is null", None))
        assert (files, rows.num_rows) == (1, 1), (name, types[name])
    # A file with NaN has no bounds.
    files, rows = planned_by_pyiceberg(metadata, tmp_path, ("x", ">=", 30.0))
    assert (files, rows.num_rows) == (2, 10)
    files, rows = planned_by_pyiceberg(metadata, tmp_path, ("y", "<", 5))
    assert (files, rows.num_rows) == (2, 6)
    files, rows = planned_by_pyiceberg(metadata, tmp_path, ("y", "is null", None))
    assert (files, rows.num_rows) == (2, 20)


CUT = "a" * 15
LONG_TEXTS = (
    [f"{CUT}b{end}" for end in ("", "a", "z" * 9, "\ud7ff", "\U0010ffff")],
    [f"{CUT}\ud7ff{end}" for end in ("", "x", "\uffff")],
    [f"{CUT}\ue000x", f"{CUT}\uffff{CUT}"],
    [f"{CUT}\U0001f600x", f"{CUT}\U0010ffff{CUT}"],
    ["b" + "\U0010ffff" * 15 + "x", "b" + "\U0010ffff" * 20],
    ["\U0010ffff" * 16 + "x", "\U0010ffff" * 20],
    ["", "\x01", CUT, CUT + "a", CUT + "aa"],
)
"""Texts of one file each, around the 16 characters after which bounds are cut, and around surrogates."""


@needs_readers
def test_no_reader_misses_a_text_that_is_longer_than_its_bounds(tmp_path: Path) -> None:
    table = open_catalog(str(tmp_path / "lake")).create_table(
        "d.t",
        {"id": "BIGINT", "s": "STRING"},
        options={"write-mode": "append-only", "metadata.iceberg.storage": "table-location", "write-only": "true"},
    )
    for place, texts in enumerate(LONG_TEXTS):
        table.append([{"id": place, "s": text} for text in texts])
    metadata = metadata_of(table, len(LONG_TEXTS))
    rows = table.to_arrow()

    left_out = 0
    for value in {text for texts in LONG_TEXTS for text in texts} | {f"{CUT}c", "b", "\ue000"}:
        for operator in ("=", "<=", ">"):
            files, found = planned_by_pyiceberg(metadata, tmp_path, ("s", operator, value))
            kept = [is_kept(each, operator, value) for each in rows.column("s").to_pylist()]
            expected = rows.filter(pa.array(kept))
            assert canonical(found, ["id", "s"]) == canonical(expected, ["id", "s"]), (operator, value)
            left_out += len(LONG_TEXTS) - files
            some, all_ = filtered_by_duckdb(metadata, ("s", operator, value))
            assert some == all_, (operator, value)
    assert left_out > 0


@needs_readers
@pytest.mark.parametrize("seed", thinned(range(40), keep=1))
def test_no_reader_misses_a_row_by_a_random_filter(tmp_path: Path, seed: int) -> None:
    """The lives change columns and their types; files are small, so that there are many."""
    rng = Random(seed)  # noqa: S311  chance, not cryptography
    drawn = draw_view(rng, open_catalog(str(tmp_path / "warehouse")))
    print(drawn.table.schema.fields, drawn.key, drawn.partition, drawn.options)
    for _ in range(3):
        for _ in range(4):
            print(move(drawn, rng))
        table = drawn.table.refresh()
        shown = view_of(table).shown()
        if shown and shown == table.inspect.latest_snapshot_id():
            check_filters(drawn, table, metadata_of(table, shown), rng, tmp_path)


def check_filters(drawn: DrawnView, table: DynamicTable, metadata: str, rng: Random, scratch: Path) -> None:
    """Compare rows by some filters with those that the same filter leaves of all rows."""
    rows = table.to_arrow()
    names = [each.name for each in table.schema.scalar_fields if each.name in drawn.makers]
    for _ in range(6):
        name = rng.choice(names)
        value = drawn.makers[name](rng.randrange(-3 if name == "n" else 0, KEYS + 60))
        operator = rng.choice([*OPERATORS, "is null", "is not null"])
        if isinstance(value, bool | bytes) or value != value:  # noqa: PLR0124  NaN
            operator = rng.choice(["is null", "is not null"])
        if operator not in OPERATORS:
            value = None
        if isinstance(value, Decimal | int) and rng.random() < 0.2:
            value += 1
        if isinstance(value, datetime) and rng.random() < 0.2:
            value -= timedelta(days=400)
        if isinstance(value, Decimal):
            value = value.quantize(Decimal(1).scaleb(-(table.schema.field(name).type.scale or 0)))
        _, found = planned_by_pyiceberg(metadata, scratch, (name, operator, value))
        if operator == "!=":
            # PyIceberg keeps a null if it leaves the condition out, because bounds show that all values match.
            found = found.filter(pc.is_valid(found.column(name)))
        kept = [is_kept(each, operator, value) for each in rows.column(name).to_pylist()]
        assert canonical(found, rows.column_names) == canonical(
            rows.filter(pa.array(kept, pa.bool_())), rows.column_names
        ), (name, operator)
        # DuckDB compares NaN in its own way, so it filters both.
        some, all_ = filtered_by_duckdb(metadata, (name, operator, value))
        assert some == all_, (name, operator, value)


def is_kept(value: Any, operator: str, other: Any) -> bool:
    """Return whether a filter keeps a row with this value."""
    if operator in ("is null", "is not null"):
        return (value is None) == (operator == "is null")
    return value is not None and OPERATORS[operator](value, other)
