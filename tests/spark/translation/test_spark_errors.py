"""Translation of Spark's exceptions to the original errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import StorageError
from storage_lib.errors import CommitConflictError, UnavailableError
from storage_lib.schema.options.table_options import is_secret
from storage_lib.spark.translation.spark_errors import storage_error_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRETS = (
    "log.kafka.sasl.plain.password",
    "log.kafka.sasl.jaas.config",
    "s3.access-key-id",
    "s3.secret-access-key",
    "azure.account_key",
    "azure.sas-key",
    "gcs.encryption.key",
    "registry.credential",
    "catalog.token",
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Traceback ...\nstorage_lib.errors.CommitConflictError: somebody was first\n", CommitConflictError),
        ("org.apache.spark.SparkException: Python worker failed to connect back.\nat ...", UnavailableError),
        ("java.lang.OutOfMemoryError: Java heap space", None),
        ("storage_lib.errors.NoSuchError: what?", None),
    ],
)
def test_an_error_of_ours_is_found_in_what_spark_says(text: str, error: type[StorageError] | None) -> None:
    found = storage_error_in(text)

    assert (None if found is None else type(found)) is error


def test_the_plan_of_a_wrong_query_shows_no_secret_of_its_source(spark: SparkSession) -> None:
    """The plan appears in a sink's heartbeat, in its task's log and on the pages."""
    options = {key: f"sesame-{number}" for number, key in enumerate(SECRETS)}
    changes = spark.readStream.format("debezium_json").schema("id BIGINT").options(**options, topic="shown").load()

    with pytest.raises(Exception, match="UNRESOLVED_COLUMN") as wrong:
        changes.selectExpr("nothing")

    assert all(is_secret(key) for key in SECRETS)
    assert "topic=shown" in str(wrong.value)
    assert "sesame" not in str(wrong.value)


def test_a_plan_shows_no_secret_by_name_or_by_value(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    rows = spark.range(3).selectExpr("'postgresql://ann:sesame@1@db/t' AS uri", "'SharedAccessKey=sesame2' AS c")
    joined = rows.where("uri <> 'jdbc:x://y?password=sesame3' AND c <> 'sig=sesame4'")

    for mode in ("simple", "extended", "formatted", "cost"):
        joined.explain(mode)
    shown = capfd.readouterr().out + str(joined._jdf.queryExecution())

    assert "Physical Plan" in shown
    assert "sesame" not in shown
