"""Numbers that we encode as packed differences, in files with many pages: other engines read each of them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.interop.engines import Java, Ours, Place, Pypaimon, Rust
from tests.interop.one_life import DAYS, comparable
from tests.interop.table_cases import TableCase
from tests.support.other_readers import needs_pypaimon
from tests.support.paimon_core import PaimonCore

ROWS = 5_000
CASE = TableCase(
    columns={
        "count": ("INT", []),
        "total": ("BIGINT", []),
        "price": ("DECIMAL(9, 2)", []),
        "sum": ("DECIMAL(18, 4)", []),
        "born": ("DATE", []),
        "at": ("TIMESTAMP(6)", []),
        "since": ("TIMESTAMP(3) WITH LOCAL TIME ZONE", []),
    }
)


@needs_pypaimon
def test_packed_numbers_with_gaps_between_them_are_read_alike_by_all(paimon_core: PaimonCore, tmp_path: Path) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    Ours().create(place, CASE)
    table = place.ours()
    random = np.random.default_rng(3)
    numbers = random.permutation(ROWS)
    # Nulls in runs of every length: none, single rows, and more than one block of 128.
    gaps = (numbers % 7 == 0) | ((np.arange(ROWS) > 1_000) & (np.arange(ROWS) < 1_400))
    small = pa.array(numbers.astype(np.int32) - ROWS // 2, mask=gaps)
    columns = {
        "day": pa.array([DAYS[0]] * ROWS),
        "id": pa.array(np.arange(ROWS) * 3),
        "count": small,
        "total": pa.array(random.integers(-(2**40), 2**40, ROWS), mask=gaps),
        "price": small.cast(pa.decimal128(12, 2)).cast(pa.decimal128(9, 2)),
        "sum": small.cast(pa.decimal128(16, 4)).cast(pa.decimal128(18, 4)),
        "born": pa.array(numbers.astype(np.int32)).cast(pa.date32()),
        "at": pa.array(random.integers(-(2**42), 2**42, ROWS), mask=gaps).cast(pa.timestamp("us")),
        "since": pa.array(numbers * 10_007).cast(pa.timestamp("ms", tz=str(dt.UTC))),
    }
    table.append(pa.table(columns).take(pa.array(numbers)))

    file = next(place.warehouse.rglob("*.parquet"))
    group = pq.read_metadata(file).row_group(0)
    packed = {
        group.column(index).path_in_schema
        for index in range(group.num_columns)
        if "DELTA_BINARY_PACKED" in group.column(index).encodings
    }
    assert packed >= {"_KEY_id", "id", *CASE.columns}
    ours = comparable(Ours().read(place, {}))
    assert len(ours) == ROWS
    for engine in (Java(paimon_core), Rust(), Pypaimon()):
        assert comparable(engine.read(place, {})) == ours
