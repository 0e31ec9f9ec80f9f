"""What Spark reports, as the error that it was."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from storage_lib import StorageError
from storage_lib.errors import CommitConflictError, UnavailableError
from storage_lib.spark.spark_errors import storage_error_in


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
