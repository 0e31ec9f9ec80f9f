"""The records that do not fit are those whose row ``append`` refuses by itself."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS
from storage_lib.table.sources.fitting_records import FittingRecords
from tests.support.fake_environment import fake_environment

COLUMNS = {"id": "BIGINT NOT NULL", "name": "VARCHAR(3)", "code": "BINARY(2)", "note": "STRING NOT NULL", "day": "DATE"}


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_refused_as_each_of_them_would_be_alone(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    options = {"log.system": "none", **({"ignore-delete": "true"} if chance.random() < 0.4 else {})}
    has_key = chance.random() < 0.6
    if not has_key and chance.random() < 0.5:
        options["write-mode"] = "append-only"
    table = MemoryCatalog(environment=fake_environment()).create_table(
        "shop.items", COLUMNS, primary_key=["id"] if has_key else (), options=options
    )
    fitting = FittingRecords(table.name, table.schema, table.options)
    count, share = chance.randrange(60), chance.choice([0.0, 0.1, 0.9])

    def drawn(good: list[object], bad: list[object]) -> list[object]:
        return [chance.choice(bad if chance.random() < share else good) for _ in range(count)]

    nullable = pa.schema([each.with_nullable(True) for each in table.arrow_schema])
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(drawn([1, 2, 3], [None]), pa.int64()),
            pa.array(drawn(["a", "abc", None, "äöü"], ["abcd", "äöüß"]), pa.string()),
            pa.array(drawn([b"a", b"ab", None], [b"abc"]), nullable.field("code").type),
            pa.array(drawn(["x"], [None]), pa.string()),
            pa.array(drawn([0, None], [99999999, -99999999]), pa.int32()).cast(pa.date32()),
        ],
        schema=nullable,
    )
    kinds = pa.array(drawn([0], [0, 1, 2, 3]), pa.int8())

    found = fitting.misfits(rows, kinds)

    expected = set()
    for place in range(count):
        given = rows.slice(place, 1).append_column(
            "_row_kind", pa.array(ROW_KIND_SYMBOLS).take(kinds[place : place + 1])
        )
        try:
            table.append(given)
        except InvalidInputError:
            expected.add(place)
    assert set(found) == expected
    for place, (column, reason) in found.items():
        assert reason
        if column is not None:
            assert repr(column) in reason, np.int64(place)
