"""Creates the table in tests/golden/tables, once per format release: ``python -m tests.support.golden_tables v2``.

Never run it for an existing folder: those files represent tables that users have.
"""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from storage_lib.schema.types.row_kind import RowKind
from tests.support.fake_environment import fake_environment
from tests.support.stored_table import StoredTable

GOLDEN = Path(__file__).parents[1] / "golden"
DAYS = (dt.date(2024, 5, 14), dt.date(1969, 7, 20))

ROWS: dict[int, list[tuple[Any, ...]]] = {
    1: [(DAYS[0], 1, "first", Decimal("1.50")), (DAYS[0], 2, "to go", None), (DAYS[1], 1, "moon ☾", Decimal("-0.01"))],
    2: [(DAYS[0], 1, "second", Decimal("2.50")), (DAYS[1], 1, "moon ☾", Decimal("-0.01"))],
    3: [(DAYS[0], 1, "second", Decimal("2.50")), (DAYS[1], 1, "moon ☾", Decimal("-0.01"))],
    4: [(DAYS[0], 7, "reprocessed", None), (DAYS[1], 1, "moon ☾", Decimal("-0.01"))],
}
"""Expected rows at each snapshot."""


def golden_schema() -> TableSchema:
    columns = {"day": "DATE", "id": "BIGINT", "name": "STRING", "price": "DECIMAL(10, 2)"}
    return new_table_schema(
        [(name, parse_data_type(spelled)) for name, spelled in columns.items()],
        primary_keys=["day", "id"],
        partition_keys=["day"],
        options={"bucket": "2", "partition.legacy-name": "false", "manifest.merge-min-count": "2"},
        time_millis=1_715_648_523_456,
        comment="golden",
    )


def golden_table(release: str, schema: TableSchema | None = None) -> StoredTable:
    """Return the table of one release, as stored in the repository."""
    root = f"{GOLDEN}/tables/{release}"
    if schema is None:
        schema = TableSchema.from_json(Path(TablePaths(root).schema_path(0)).read_bytes())
    return StoredTable(schema, fake_environment(LocalFileIO(durable=False), names=release), root=root)


def make(release: str) -> None:
    table = golden_table(release, golden_schema())
    assert table.store.snapshots.latest_id() is None, "it is there already"
    table.append(ROWS[1], user="stream", identifier=1, properties={"offsets": '{"0": 3}'})
    changes = [(DAYS[0], 1, "second", Decimal("2.50")), (DAYS[0], 2, "to go", None)]
    table.append(changes, [RowKind.UPDATE_AFTER, RowKind.DELETE], user="stream", identifier=2)
    table.compact()
    table.overwrite([ROWS[4][0]], partition_filter=col("day") == DAYS[0])


if __name__ == "__main__":
    make(sys.argv[1])
