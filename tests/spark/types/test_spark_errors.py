"""Translation of Spark's exceptions to the original errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import StorageError
from storage_lib.errors import CommitConflictError, CorruptFileError, UnavailableError
from storage_lib.schema.options.table_options import is_secret
from storage_lib.spark.types.spark_errors import storage_error_in

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


UNREAD = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.{}] Encountered error while reading file "
    "s3a://bucket/a%20b/data-1.parquet.  SQLSTATE: KD001\n\tat x\nCaused by: {}\n\tat y\n"
)


@pytest.mark.parametrize(
    ("kind", "cause", "error"),
    [
        ("NO_HINT", "java.lang.RuntimeException: the reason\nCaused by: java.io.EOFException", CorruptFileError),
        ("CANNOT_READ_FILE_FOOTER", "org.apache.parquet.ParquetDecodingException: the reason", CorruptFileError),
        ("NO_HINT", "java.net.SocketTimeoutException: the reason", UnavailableError),
        ("NO_HINT", "java.io.IOException: the reason\nCaused by: software.amazon.awssdk.core.X", UnavailableError),
        ("NO_HINT", "java.nio.file.AccessDeniedException: the reason", UnavailableError),
    ],
)
def test_the_error_of_a_file_that_spark_could_not_read_has_its_name_and_the_reason(
    kind: str, cause: str, error: type[StorageError]
) -> None:
    found = storage_error_in(UNREAD.format(kind, cause))

    assert type(found) is error
    assert "s3a://bucket/a b/data-1.parquet" in str(found)
    assert "the reason" in str(found)


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
