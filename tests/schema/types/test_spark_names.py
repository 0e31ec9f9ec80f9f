"""Names of Spark's types without Spark: the same as Spark's own."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.schema.types.spark_names import spark_name
from storage_lib.schema.types.type_spelling import parse_type
from storage_lib.spark.types.spark_schema import spark_type_of
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.every_type import EVERY_TYPE
from tests.support.spark_features import needs_spark

MARKS = {TypeRoot.TIME: needs_spark(SparkFeature.TIME)}


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(each, marks=MARKS.get(parse_type(each).root, ())) for each in EVERY_TYPE),
        "VARIANT",
        "MULTISET<INT>",
        "ROW<`a` INT, `b` ARRAY<MAP<STRING, DECIMAL(38, 4)>>>",
    ],
)
def test_a_type_has_the_name_that_spark_gives_it(text: str) -> None:
    kind = parse_type(text)

    assert spark_name(kind) == spark_type_of(kind).simpleString()
