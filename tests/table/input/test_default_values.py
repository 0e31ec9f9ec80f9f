"""Default values for columns missing in the input: the same in this library and in Paimon's Java core."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, WarehouseCatalog
from storage_lib.schema.evolution.schema_changes import SetOption
from tests.support.paimon_core import PaimonCore

COLUMNS = {"id": "BIGINT", "v": "INT", "s": "STRING"}
DEFAULTS = {"fields.v.default-value": "5", "fields.s.default-value": "none"}


@pytest.fixture
def warehouse(tmp_path: Path) -> WarehouseCatalog:
    return WarehouseCatalog(str(tmp_path), {"log.system": "none"})


def rows(table: DynamicTable) -> list[tuple[object, ...]]:
    return sorted(tuple(each.values()) for each in table.to_arrow().to_pylist())


def test_missing_columns_and_nulls_become_the_default(warehouse: WarehouseCatalog) -> None:
    table = warehouse.create_table("db.t", COLUMNS, primary_key=["id"], options=DEFAULTS)
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2, 3], "v": pa.array([None, 7], pa.int32()), "s": ["a", None]}))
    assert rows(table) == [(1, 5, "none"), (2, 5, "a"), (3, 7, "none")]


@pytest.mark.parametrize("options", [{}, {"write-mode": "append-only"}])
def test_tables_without_a_key_have_defaults_too(warehouse: WarehouseCatalog, options: dict[str, str]) -> None:
    table = warehouse.create_table("db.t", COLUMNS, options={**DEFAULTS, **options})
    table.append(pa.table({"id": [1]}))
    assert rows(table) == [(1, 5, "none")]


def test_a_missing_column_that_is_not_null_takes_its_default_and_a_null_in_it_is_refused(
    warehouse: WarehouseCatalog,
) -> None:
    columns = {"id": "BIGINT", "v": "INT NOT NULL"}
    table = warehouse.create_table("db.t", columns, primary_key=["id"], options={"fields.v.default-value": "5"})
    table.append(pa.table({"id": [1]}))
    assert rows(table) == [(1, 5)]
    with pytest.raises(InvalidInputError, match="is NOT NULL"):
        table.append(pa.table({"id": [1], "v": pa.array([None], pa.int32())}))


def test_rows_that_are_there_keep_their_nulls(warehouse: WarehouseCatalog) -> None:
    table = warehouse.create_table("db.t", COLUMNS, primary_key=["id"])
    table.insert(pa.table({"id": [1]}), partial=True)
    table = table.alter(*(SetOption(key, value) for key, value in DEFAULTS.items()))
    table.append(pa.table({"id": [2]}))
    assert rows(table)[1] == (2, 5, "none")
    assert rows(table)[0] == (1, None, None)
    table = table.rewrite(options={"bucket": "2"})
    assert rows(table)[0] == (1, None, None)


def test_a_deletion_by_key_alone_takes_the_row_away(warehouse: WarehouseCatalog) -> None:
    table = warehouse.create_table("db.t", COLUMNS, primary_key=["id"], options=DEFAULTS)
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [1], "_row_kind": ["-D"]}))
    assert rows(table) == [(2, 5, "none")]


@pytest.mark.integration
def test_paimons_java_core_writes_the_same_defaults(warehouse: WarehouseCatalog, tmp_path: Path) -> None:
    columns = {
        "id": "BIGINT",
        "b": "BOOLEAN",
        "n": "DECIMAL(5, 2)",
        "c": "CHAR(4)",
        "d": "DATE",
        "t": "TIMESTAMP(3)",
        "x": "DOUBLE",
        "s": "VARCHAR(4)",
    }
    texts = {
        "b": "yes",
        "n": "1.005",
        "c": "ab",
        "d": "2024-05-14",
        "t": "2024-05-14 01:02:03.5",
        "x": "3.5",
        "s": "'q'",
    }
    table = warehouse.create_table(
        "db.t",
        columns,
        primary_key=["id"],
        options={f"fields.{name}.default-value": text for name, text in texts.items()},
    )
    table.append(pa.table({"id": [1]}))
    with PaimonCore() as java:
        java.write(tmp_path, "db.t", [(2, *[None] * 7)], table.schema)
        of_java = sorted(java.read(tmp_path, "db.t", table.schema))
    assert rows(table) == of_java
    assert of_java[0][1:] == of_java[1][1:]
