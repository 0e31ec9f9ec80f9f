"""docs/tour.md is run in one session, over a real broker, and gives what it says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.errors import StorageError
from tests.support.fenced_blocks import sections
from tests.support.sql_cases import REWRITE, Step, masked, outcome, result_of, steps_of, written_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from local_kafka import LocalKafka

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(300)]
PAGE = Path(__file__).parents[2] / "docs" / "tour.md"
BLOCKS = [block.text for section in sections(PAGE) for block in section.blocks if block.language == "sql"]


def test_the_tour_gives_what_it_says(
    spark: SparkSession, warehouse: str, kafka: LocalKafka, request: pytest.FixtureRequest
) -> None:
    from storage_lib.sql import Session

    page = PAGE.read_text()
    with Session(spark, open_catalog(warehouse, {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})) as sql:
        for block in BLOCKS:
            said, found = steps_of(block), []
            for step in said:
                is_ordered = "ORDER BY" in step.statement or not step.statement.startswith("SELECT")
                run = partial(result_of, sql, step.statement.replace("<warehouse>", warehouse))
                lines = outcome(run, ordered=is_ordered, errors=(StorageError,))
                found.append(Step(step.statement, masked(lines, warehouse)))
            if request.config.getoption(REWRITE):
                page = page.replace(block, written_steps(found))
                continue
            assert [(step.statement, step.expected) for step in found] == [
                (step.statement, step.expected) for step in said
            ]
        sql.execute("DROP DATABASE shop CASCADE")
    if request.config.getoption(REWRITE):
        PAGE.write_text(page)
