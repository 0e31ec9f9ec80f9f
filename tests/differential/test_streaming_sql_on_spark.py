"""Random streaming INSERTs, on a real Spark and with a real Kafka, compared with DuckDB's batch answer.

For more of them: `python -m tests.differential.run --seed-from 0 --seed-to 200 --spark`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.differential.cases import random_case
from tests.differential.on_spark import DRAINS_MAX, OnSpark
from tests.differential.outcome import Tally
from tests.differential.run import report
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from local_kafka import LocalKafka

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

SEEDS = (range(3), range(3, 16))
SHARE_RIGHT_MIN = 0.4


@pytest.fixture
def settings_of_spark(spark: SparkSession) -> Iterator[None]:
    """Restore Spark's settings afterwards: each case changes them."""
    names = {name for seeds in SEEDS for seed in seeds for name, _ in random_case(seed).conf}
    before = {name: spark.conf.get(name, None) for name in names}
    yield
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.usefixtures("settings_of_spark")
@pytest.mark.parametrize("seeds", thinned(SEEDS), ids=str)
def test_the_sink_holds_the_answer(spark: SparkSession, kafka: LocalKafka, tmp_path: Path, seeds: range) -> None:
    runner, tally = OnSpark(spark, tmp_path, kafka.bootstrap_servers), Tally()
    wrong = []
    for case, outcome in runner.run_all(random_case(seed, drains_max=DRAINS_MAX) for seed in seeds):
        tally.add(outcome)
        if outcome.verdict == "wrong":
            wrong.append(report(case, outcome))
    assert not wrong, "\n".join(wrong)
    assert tally.share_right >= SHARE_RIGHT_MIN, str(tally)
