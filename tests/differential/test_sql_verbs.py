"""Random statements that change rows, on a real Spark, compared with DuckDB's tables.

For more of them: `python -m tests.differential.verbs_on_spark --seed-from 0 --seed-to 100`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.differential.verb_cases import VERB_TABLES, VerbTable
from tests.differential.verbs_on_spark import difference_after_verbs
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
STATEMENTS = 4


@pytest.mark.parametrize("table", thinned(VERB_TABLES, keep=2), ids=lambda table: table.name)
def test_statements_leave_what_they_leave_in_duckdb(spark: SparkSession, tmp_path: Path, table: VerbTable) -> None:
    assert difference_after_verbs(spark, tmp_path, table, 1, count=STATEMENTS) is None
