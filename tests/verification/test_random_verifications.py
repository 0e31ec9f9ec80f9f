"""Random tables with planted differences: each is found and named, and nothing else."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib import DynamicTable, Verification, open_catalog, verify
from storage_lib.errors import InvalidInputError
from storage_lib.verification.named_differences import shown_value
from storage_lib.verification.value_kind import ValueKind
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.planted_differences import TYPES, Planted, Row, planted

_EPOCHS = {"date": ValueKind.DATE, "moment": ValueKind.TIMESTAMP}


def table_of(made: Planted, folder: Path, chance: Random) -> DynamicTable:
    """Return a table with the rows, in several files and buckets."""
    catalog = open_catalog(str(folder / "warehouse"), {"log.system": "none"})
    rows = made.arrow(made.ours, of_source=False)
    options = {"bucket": str(chance.choice((1, 3)))}
    table = catalog.create_table("shop.orders", rows.schema, primary_key=[*made.key_kinds], options=options)
    half = rows.num_rows // 2
    for part in (rows.slice(half), rows.slice(0, half), rows.slice(0, 3)):
        table.append(part)
    return table


def shown(made: Planted, key: tuple[Any, ...]) -> tuple[str, ...]:
    """Return a key as it is named; an integer that is compared with a decimal number is named by its text."""
    return tuple(
        str(shown_value(pa.scalar(value, TYPES[kind].ours).value, _EPOCHS[kind]) if kind in _EPOCHS else value)
        for value, kind in zip(key, made.key_kinds.values(), strict=True)
    )


def check(made: Planted, found: Verification) -> None:
    """Compare what was found with what was planted."""
    named: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {}
    for each in found.differences:
        named.setdefault(each.kind, {})[tuple(map(str, each.key.values()))] = each.columns
    assert {*named.get("missing", {})} == {shown(made, key) for key in made.missing}
    assert {*named.get("extra", {})} == {shown(made, key) for key in made.extra}
    assert {*named.get("repeated", {})} == {shown(made, key) for key in made.repeated}
    assert {key: {*columns} for key, columns in named.get("different", {}).items()} == {
        shown(made, key): columns for key, columns in made.different.items()
    }
    counts = (found.missing, found.extra, found.different, found.repeated)
    assert counts == tuple(map(len, (made.missing, made.extra, made.different, made.repeated)))
    assert found.columns == Counter(name for columns in made.different.values() for name in columns)
    assert (found.table_rows, found.source_rows) == (len(made.ours), len(made.source))
    assert found.is_equal == (not any(counts))


@pytest.mark.parametrize("seed", thinned(range(60), 6))
def test_planted_differences_are_found_in_parquet_files(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)  # noqa: S311  reproducible
    made = planted(chance, row_count=chance.choice((0, 5, 400, 3000)), difference_count=chance.choice((0, 1, 6)))
    table = table_of(made, tmp_path, chance)
    rows = made.arrow(made.source, of_source=True)
    (tmp_path / "source").mkdir()
    for place, start in enumerate(range(0, max(1, rows.num_rows), 1000)):
        pq.write_table(rows.slice(start, 1000), tmp_path / "source" / f"{place}.parquet")

    found = verify(table, str(tmp_path / "source"), limit=10_000, memory=chance.choice((2_000, 50_000, 1 << 28)))

    check(made, found)


@needs("duckdb")
@pytest.mark.parametrize("seed", thinned(range(60, 72), 2))
def test_planted_differences_are_found_in_a_query(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)  # noqa: S311  reproducible
    made = planted(chance, row_count=1500, difference_count=chance.choice((0, 5)))
    table = table_of(made, tmp_path, chance)
    pq.write_table(made.arrow(made.source, of_source=True), tmp_path / "source.parquet")

    query = f"FROM '{tmp_path}/source.parquet';"
    found = verify(table, query=query, limit=10_000, memory=chance.choice((5_000, 1 << 28)))

    check(made, found)


@pytest.mark.parametrize("seed", thinned(range(80, 104), 3))
def test_planted_differences_of_rows_without_a_key_are_counted(seed: int, tmp_path: Path) -> None:
    """Each row counts as often as a side has it; a changed row is one missing and one extra."""
    chance = Random(seed)  # noqa: S311  reproducible
    made = planted(chance, row_count=800, difference_count=chance.choice((0, 5)))
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    ours = made.ours + chance.choices(made.ours, k=20)
    rows = made.arrow(ours, of_source=False)
    table = catalog.create_table("shop.orders", rows.schema, options={"bucket": "1"})
    table.append(rows)
    pq.write_table(made.arrow(made.source, of_source=True), tmp_path / "source.parquet")

    found = verify(table, str(tmp_path / "source.parquet"), limit=10_000, memory=chance.choice((3_000, 1 << 28)))

    left, right = Counter(map(canonical, ours)), Counter(map(canonical, made.source))
    assert (found.missing, found.extra) == ((right - left).total(), (left - right).total())
    assert (found.different, found.repeated) == (0, 0)
    assert sum(abs(each.table_count - each.source_count) for each in found.differences) == found.missing + found.extra


def canonical(row: Row) -> tuple[Any, ...]:
    """Return a row so that equal ones are equal in Python, which NaN is not."""
    return tuple("NaN" if value != value else value for value in row.values())  # noqa: PLR0124


@pytest.mark.parametrize("seed", thinned(range(110, 122), 2))
def test_planted_differences_are_found_in_another_table(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)  # noqa: S311  reproducible
    made = planted(chance, row_count=700, difference_count=4)
    # A table has each key once.
    made.source = [*{made.key(row): row for row in made.source}.values()]
    made.repeated.clear()
    table = table_of(made, tmp_path, chance)
    rows = made.arrow(made.source, of_source=False)
    copy = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"}).create_table("shop.copy", rows.schema)
    copy.append(rows)

    found = verify(table, copy, limit=10_000, memory=chance.choice((5_000, 1 << 28)))

    check(made, found)


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int64()), ("names", pa.list_(pa.decimal128(9, 2)))])),
        ("counts", pa.map_(pa.string(), pa.float64())),
    ]
)
OTHER_NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("tags", pa.large_list(pa.large_string())),
        ("place", pa.struct([("names", pa.list_(pa.decimal128(18, 4))), ("x", pa.int32())])),
        ("counts", pa.map_(pa.string(), pa.float32())),
    ]
)


@pytest.mark.parametrize("seed", thinned(range(12), 3))
def test_nested_values_are_compared_by_their_parts(seed: int, tmp_path: Path) -> None:
    """Order counts in arrays, not in maps, and neither do the types and the order of a row's fields."""
    chance = Random(seed)  # noqa: S311  reproducible
    rows = [nested_row(number, chance) for number in range(300)]
    others = [nested_row(number, chance) if chance.random() < 0.05 else row for number, row in enumerate(rows)]
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    table = catalog.create_table("shop.orders", NESTED, primary_key=["id"])
    table.append(pa.Table.from_pylist(rows, NESTED))
    shuffled = [
        {**row, "counts": None if row["counts"] is None else chance.sample(row["counts"], len(row["counts"]))}
        for row in others
    ]
    pq.write_table(pa.Table.from_pylist(shuffled, OTHER_NESTED), tmp_path / "source.parquet")

    found = verify(table, str(tmp_path / "source.parquet"), limit=1000, memory=chance.choice((20_000, 1 << 28)))

    expected = {
        row["id"]: {name for name in row if comparable_part(row[name]) != comparable_part(other[name])}
        for row, other in zip(rows, others, strict=True)
    }
    assert {each.key["id"]: {*each.columns} for each in found.differences} == {k: v for k, v in expected.items() if v}


def nested_row(number: int, chance: Random) -> Row:
    tags = [chance.choice((None, "", "a", 'b"', "null", ",")) for _ in range(chance.randrange(3))]
    names = [chance.choice((None, Decimal("1.50"), Decimal(0))) for _ in range(chance.randrange(3))]
    counts = [(key, chance.choice((None, 0.5, float("nan")))) for key in chance.sample("abc", chance.randrange(3))]
    return {
        "id": number,
        "tags": chance.choice((None, tags)),
        "place": chance.choice((None, {"x": chance.choice((None, 1)), "names": chance.choice((None, names))})),
        "counts": chance.choice((None, counts)),
    }


def comparable_part(value: Any) -> str:
    """Return a nested value as text; the entries of a map are in order."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return repr(sorted(map(repr, value)))
    return repr(value)


@needs("duckdb")
def test_files_and_queries_that_fail_during_a_read_are_refused(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    table = catalog.create_table("shop.orders", {"id": "BIGINT"}, primary_key=["id"])
    pq.write_table(pa.table({"id": list(range(100_000))}), tmp_path / "source.parquet", compression="none")
    whole = (tmp_path / "source.parquet").read_bytes()
    (tmp_path / "source.parquet").write_bytes(b"\xff" * 50_000 + whole[50_000:])

    with pytest.raises(InvalidInputError, match=r"can't be read as Parquet files"):
        verify(table, str(tmp_path / "source.parquet"))
    with pytest.raises(InvalidInputError, match=r"DuckDB can't run the query: .*too large"):
        verify(
            table, query="SELECT CASE WHEN i < 99000 THEN i ELSE error('too large') END AS id FROM range(99999) r(i)"
        )
