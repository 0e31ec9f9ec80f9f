"""VARIANT columns in Spark: values of parse_json are written, and variant_get reads them back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import WarehouseCatalog
from storage_lib.spark import read, read_stream, write, write_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JSON = """
    SELECT id, parse_json(text) AS v, array(parse_json(text), NULL) AS list, named_struct('a', parse_json(text)) AS row
    FROM VALUES (1, '{"name": "ada", "n": [1, 2.5]}'), (2, NULL), (3, '"plain"') AS t(id, text)
"""


def test_variants_are_written_merged_and_looked_into(spark: SparkSession, tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    columns = {"id": "INT", "v": "VARIANT", "list": "ARRAY<VARIANT>", "row": "ROW<a VARIANT>"}
    table = catalog.create_table("db.t", columns, primary_key=["id"])

    write(spark.sql(JSON), table)
    write(spark.sql('SELECT 3 AS id, parse_json(\'{"name": "eve"}\') AS v'), table)

    df = read(spark, table)
    assert df.schema.simpleString() == "struct<id:int,v:variant,list:array<variant>,row:struct<a:variant>>"
    found = df.selectExpr(
        "id",
        "variant_get(v, '$.name', 'string') AS name",
        "variant_get(v, '$.n[1]', 'double') AS n",
        "to_json(list[0]) AS first",
        "to_json(row.a) AS inside",
    )
    text = '{"n":[1,2.5],"name":"ada"}'
    assert sorted(tuple(row) for row in found.collect()) == [
        (1, "ada", 2.5, text, text),
        (2, None, None, None, None),
        (3, "eve", None, None, None),
    ]
    assert df.where("variant_get(v, '$.name', 'string') = 'eve'").count() == 1


def test_variants_pass_through_streams(spark: SparkSession, tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    columns = {"id": "INT", "v": "VARIANT", "list": "ARRAY<VARIANT>", "row": "ROW<a VARIANT>"}
    source, target = (catalog.create_table(name, columns, primary_key=["id"]) for name in ("db.source", "db.target"))
    write(spark.sql(JSON), source)

    stream = read_stream(spark, source)
    query = write_stream(stream, target, checkpoint_location=str(tmp_path / "checkpoint"), available_now=True)
    query.awaitTermination()

    assert stream.schema["v"].dataType.simpleString() == "variant"
    assert sorted(target.to_arrow().to_pylist(), key=str) == sorted(source.to_arrow().to_pylist(), key=str)
    assert target.to_arrow().num_rows == 3
