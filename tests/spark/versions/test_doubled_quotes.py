"""A doubled quote stands for one since Spark 4.1: before, a materialized table refuses it, as the two would differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

import pyspark

from storage_lib import InvalidInputError, open_catalog
from storage_lib.spark import create_materialized_table, set_query
from storage_lib.spark.versions.doubled_quotes import refuse_doubled_quotes
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DOUBLED = "SELECT id, 'it''s' AS v FROM t"


def test_the_installed_spark_reads_a_doubled_quote_as_its_version_says(spark: SparkSession) -> None:
    (row,) = spark.sql("SELECT 'it''s' AS v").collect()

    assert row.v == ("it's" if SparkFeature.DOUBLED_QUOTES.is_here else "its")


@pytest.mark.parametrize(
    ("query", "quote"),
    [
        (DOUBLED, "'"),
        ('SELECT "a""b" AS v', '"'),
        ("SELECT '', ''''", "'"),
        ("SELECT r'a''b'", "'"),
        (r"SELECT r'a\' AS v, 'it''s'", "'"),
        ("-- it's\nSELECT 'it''s'", "'"),
    ],
)
def test_a_doubled_quote_is_refused_before_spark_4_1(monkeypatch: pytest.MonkeyPatch, query: str, quote: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.0")
    refuse_doubled_quotes("shop.m", query)

    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    with pytest.raises(InvalidInputError) as refused:
        refuse_doubled_quotes("shop.m", query)

    assert str(refused.value).startswith("table shop.m: its query: a doubled quote")
    assert str(refused.value).endswith(f"pyspark 4.0.5 is installed. Write \\{quote} in place of {quote * 2}")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT '' AS v, 'a' 'b', \"\" AS w, '' ''",
        r"SELECT 'it\'s', '\\'",
        "SELECT 1 -- it''s\n, 2",
        "SELECT /* 'it''s' */ `a''b`",
        "SELECT 'a'\"b\"",
        r"SELECT r'a\', 'b'",
    ],
)
def test_other_texts_are_taken_by_all_versions(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")

    refuse_doubled_quotes("shop.m", query)


def test_neither_a_new_table_nor_another_query_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = open_catalog(tmp_path)
    table = catalog.create_table("shop.t", {"id": "BIGINT"})
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")

    with pytest.raises(InvalidInputError, match=r"table shop\.m: its query"):
        create_materialized_table(catalog, "shop.m", DOUBLED)
    with pytest.raises(InvalidInputError, match=r"table shop\.t: its query"):
        set_query(table, DOUBLED)

    assert not catalog.table_exists("shop.m")
