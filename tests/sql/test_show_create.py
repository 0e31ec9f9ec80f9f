"""The statement of SHOW CREATE TABLE creates a table with an equal schema in an empty catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import open_catalog
from storage_lib.schema.options.table_options import OWN_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.schema.table_schema import TableSchema

TABLES = {
    "a key of two columns, partitions, comments": (
        "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'it''s', dt DATE, v DECIMAL(38, 10) COMMENT 'back\\slash', "
        "PRIMARY KEY (dt, id) NOT ENFORCED) COMMENT 'say \"all\"; `x`' PARTITIONED BY (dt) " + "WITH ('bucket' = '3')"
    ),
    "every scalar type": (
        "CREATE TABLE t (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(5, 2), "
        "i DATE, j TIME(3), k CHAR(4), l VARCHAR(9), m STRING, n BINARY(4), o VARBINARY(8), p BYTES, q TIMESTAMP(3), "
        "r TIMESTAMP(6) WITH LOCAL TIME ZONE, s VARIANT, t INT NOT NULL) WITH ('write-mode' = 'append-only')"
    ),
    "nested types, odd names in them, too": (
        "CREATE TABLE t (id INT, a ARRAY<ROW<x INT NOT NULL, `odd name` STRING>>, m MAP<STRING NOT NULL, "
        "ARRAY<DOUBLE>>, s MULTISET<STRING>, r ROW<p ROW<q DATE> NOT NULL, `a,b` MAP<INT, INT>, `c``d`: TIME(3)>, "
        "PRIMARY KEY (id) NOT ENFORCED)"
    ),
    "odd names": "CREATE TABLE `odd-db`.`select` (`from` INT, `a b` STRING, `q``q` INT, `Uml\u00e4ut` INT)",
    "computed columns and a watermark": (
        "CREATE TABLE t (id BIGINT, at TIMESTAMP(3), twice AS (id * 2) COMMENT 'two', said AS (concat('it''s ', id)), "
        "WATERMARK FOR at AS at - INTERVAL '5' MINUTE, PRIMARY KEY (id) NOT ENFORCED)"
    ),
    "a watermark without delay": "CREATE TABLE t (at TIMESTAMP(3), WATERMARK FOR at AS at)",
    "counted rows by some columns": "CREATE TABLE t (a INT, b STRING) WITH ('bucket' = '4', 'bucket-key' = 'a')",
    "append only, no bucket": "CREATE TABLE t (a INT) WITH ('write-mode' = 'append-only', 'file.format' = 'orc')",
    "an aggregation": (
        "CREATE TABLE t (id INT, n BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('merge-engine' = "
        "'aggregation', 'fields.n.aggregate-function' = 'sum', 'fields.s.aggregate-function' = 'listagg', "
        "'fields.s.list-agg-delimiter' = ' '' ')"
    ),
    "a partial update in groups": (
        "CREATE TABLE t (id INT, v INT, g INT, PRIMARY KEY (id) NOT ENFORCED) WITH "
        "('merge-engine' = 'partial-update', 'fields.g.sequence-group' = 'v')"
    ),
}


@pytest.mark.parametrize("name", list(TABLES))
def test_its_output_makes_an_equal_table_elsewhere(
    spark: SparkSession, warehouse: str, tmp_path: Path, name: str
) -> None:
    from storage_lib.sql import Session

    catalog, elsewhere = open_catalog(warehouse), open_catalog(tmp_path / "elsewhere")
    with Session(spark, catalog) as first, Session(spark, elsewhere, database="nowhere") as second:
        first.execute(TABLES[name])
        (table,) = catalog.list_tables()
        quoted = ".".join(f"`{part}`" for part in table.split("."))
        shown = first.execute(f"SHOW CREATE TABLE {quoted}").to_arrow()["statement"][0].as_py()
        second.execute(shown)
        again = second.execute(f"SHOW CREATE TABLE {quoted}").to_arrow()["statement"][0].as_py()

    assert again == shown
    assert comparable(elsewhere.load_table(table).schema) == comparable(catalog.load_table(table).schema)


def comparable(schema: TableSchema) -> TableSchema:
    """Return the schema without the properties of a single table: its uuid and its time."""
    options = {key: value for key, value in schema.options.items() if key != f"{OWN_PREFIX}uuid"}
    return replace(schema, options=options, time_millis=0, id=0)
