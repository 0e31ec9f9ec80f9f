"""Keys of all types, for random tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from storage_lib import DynamicTable
from tests.support.shared_table import Row

KEYS = 60
DAY = dt.datetime(2026, 11, 25)  # noqa: DTZ001  a TIMESTAMP has no zone
KEY_POOLS: Mapping[str, tuple[Sequence[str], Sequence[Row], int]] = {
    "integers": (["BIGINT"], [(number * 7 - 200,) for number in range(KEYS)], 10),
    "extreme integers": (["BIGINT"], [(sign * ((1 << 63) - 1 - n),) for n in range(30) for sign in (1, -1)], 10),
    "text": (["STRING"], [(text,) for n in range(20) for text in (f"a{n}", "é" * (n + 1), f"\U0001f600{n}")], 10),
    "bytes": (["BYTES"], [(bytes([n % 3 * 127, n]),) for n in range(KEYS)], 10),
    "decimals": (["DECIMAL(10, 2)"], [(Decimal(n * 37 - 999) / 100,) for n in range(KEYS)], 10),
    "wide decimals": (["DECIMAL(30, 2)"], [(Decimal(n - 30) * 10**18 + Decimal("0.25"),) for n in range(KEYS)], 10),
    "days": (["DATE"], [(dt.date(1970, 1, 1) + dt.timedelta(n * 400 - 9_000),) for n in range(KEYS)], 10),
    "times of day": (["TIME(3)"], [(dt.time(n % 24, n, 59, 999_000),) for n in range(KEYS)], 10),
    "milliseconds": (["TIMESTAMP(3)"], [(DAY + dt.timedelta(milliseconds=n - 30),) for n in range(KEYS)], 10),
    "microseconds": (["TIMESTAMP(6)"], [(DAY + dt.timedelta(microseconds=n - 30),) for n in range(KEYS)], 10),
    "instants": (
        ["TIMESTAMP_LTZ(3)", "INT"],
        [(DAY.replace(tzinfo=dt.UTC) + dt.timedelta(milliseconds=n // 9), n) for n in range(KEYS)],
        10,
    ),
    "one tenant": (["STRING", "INT"], [("tenant", n) for n in range(KEYS)], 10),
    "two flags": (["BOOLEAN", "INT"], [(n % 2 == 0, n) for n in range(KEYS)], 10),
    "three columns": (["INT", "STRING", "BIGINT"], [(n // 30, f"s{n // 6 % 5}", n) for n in range(KEYS)], 10),
    "floats": (["DOUBLE"], [(value,) for value in (float("nan"), float("-inf"), -0.0, 0.0, *map(float, range(50)))], 1),
    "floats after a tenant": (["INT", "DOUBLE"], [(n // 20, n - 30.5) for n in range(KEYS)], 3),
}
"""Types of the key columns, all keys, and in how many ranges they can be divided at least."""


def table_of(table: DynamicTable, rows: Sequence[Row]) -> pa.Table:
    """Convert rows to an Arrow table of the table's columns."""
    fields = list(table.schema.arrow_schema)
    columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(fields)]
    return pa.table(columns, schema=table.schema.arrow_schema)
