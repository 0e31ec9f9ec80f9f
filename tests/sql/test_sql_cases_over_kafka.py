"""SQL cases of tables with a log, over a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from tests.support.sql_cases import REWRITE, SqlCase, load_sql_cases, steps_given, write_steps_given

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from local_kafka import LocalKafka

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.mark.parametrize("case", load_sql_cases("logged/two_stores.sql"), ids=lambda case: case.id)
def test_the_case_gives_what_the_file_says(
    case: SqlCase, spark: SparkSession, warehouse: str, kafka: LocalKafka, request: pytest.FixtureRequest
) -> None:
    from storage_lib.sql import Session

    with Session(spark, open_catalog(warehouse, {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})) as sql:
        try:
            steps = steps_given(case, sql, warehouse)
        finally:
            sql.execute("DROP DATABASE default CASCADE")
    if request.config.getoption(REWRITE):
        write_steps_given(case, steps)
        return
    assert [(step.statement, step.expected) for step in steps] == [
        (step.statement, step.expected) for step in case.steps
    ]
