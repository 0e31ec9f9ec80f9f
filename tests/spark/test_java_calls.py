"""SQL of somebody else cannot reach Java: it would read the environment of the driver, where secrets are."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from storage_lib.errors import InvalidInputError
from storage_lib.spark import java_calls
from storage_lib.spark.java_calls import JAVA_CALLS, forbid_java_calls

pytestmark = [pytest.mark.spark, pytest.mark.integration]


@pytest.mark.parametrize("prefix", ["", "builtin.", "system.builtin."])
@pytest.mark.parametrize("name", JAVA_CALLS)
def test_no_expression_and_no_query_calls_java(spark: SparkSession, name: str, prefix: str) -> None:
    own = spark.newSession()
    call = f"{prefix}{name}('java.lang.System', 'getenv', 'PATH')"
    forbid_java_calls(own)
    forbid_java_calls(own)

    with pytest.raises(AnalysisException):
        own.sql(f"SELECT {call}")
    with pytest.raises(AnalysisException):
        own.range(1).selectExpr(call)
    assert own.sql("SELECT upper('x')").first() == ("X",)


def test_a_spark_that_keeps_them_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_calls, "_is_known", lambda _spark, _name: True)

    with pytest.raises(InvalidInputError, match="java_method cannot be removed"):
        forbid_java_calls(spark.newSession())
