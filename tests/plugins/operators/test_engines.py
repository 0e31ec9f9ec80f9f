"""Choice of the engine; both engines leave the same table behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.validate_table import ValidateTableOperator
from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError
from tests.support.task_context import task_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

ROWS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


def frame_of_day(partition: Mapping[str, str], *, spark: Any, count: int = 3) -> Any:
    """Return the rows of a day as a Spark data frame."""
    from pyspark.sql.functions import lit

    return spark.range(10, 10 + count).select(lit(partition["day"]).alias("day"), "id")


@pytest.fixture
def orders(warehouse: Path) -> Any:
    """Create a table of two days with two files each."""
    table = open_catalog(str(warehouse)).create_table(
        "shop.orders", ROWS, primary_key=["day", "id"], partition_by=["day"], options={"log.system": "none"}
    )
    for one in (1, 2):
        table.append(pa.table({"day": ["it's", "b"], "id": [one, one]}, schema=ROWS))
    return table


def content(table: Any) -> list[tuple[str, int]]:
    return sorted((row["day"], row["id"]) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("engine", "size", "by_spark"),
    [("auto", 99, False), ("auto", 100, True), ("local", 1000, False), ("spark", 0, True)],
)
def test_auto_is_spark_from_so_many_bytes_on(engine: str, size: int, by_spark: bool) -> None:  # noqa: FBT001
    task = CompactTableOperator(task_id="compact", table="db.t", engine=engine, spark_bytes_min="100")

    assert task.uses_spark(size) is by_spark


def test_the_limit_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__SPARK_BYTES_MIN", "5")

    assert CompactTableOperator(task_id="compact", table="db.t").uses_spark(5)


def test_an_engine_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="one of auto, local, spark"):
        CompactTableOperator(task_id="compact", table="db.t", engine="flink").uses_spark(5)


def test_a_reprocessing_has_one_source() -> None:
    for given in ({}, {"rows": "a:b", "query": "SELECT 1"}):
        task = ReprocessPartitionsOperator(task_id="do", table="db.t", partitions=[{"day": "a"}], **given)
        with pytest.raises(InvalidInputError, match="either rows"):
            task.execute(task_context(task))


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names
def test_spark_does_what_this_process_would_have_done(
    orders: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tasks receive the tests' session, which other tests of this process use as well.
    monkeypatch.setattr(type(spark), "stop", lambda _spark: None)
    by_spark: dict[str, Any] = {"table": "shop.orders", "engine": "spark", "master": "local[1]"}
    partitions = [{"day": "it's"}]
    orders.append(pa.table({"day": ["c"], "id": [7]}, schema=ROWS))
    expected = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": 1}}
    validate = [
        ValidateTableOperator(
            task_id="validate", partition={"day": "b"}, expectations=[{**expected, "severity": "warning"}], **engine
        )
        for engine in (by_spark, {"table": "shop.orders", "engine": "local"})
    ]
    compact = CompactTableOperator(task_id="compact", **by_spark)
    by_function = ReprocessPartitionsOperator(
        task_id="function", partitions=partitions, rows=f"{__name__}:frame_of_day", **by_spark
    )
    by_query = ReprocessPartitionsOperator(
        task_id="query",
        partitions=partitions,
        query="SELECT {day} AS day, id + 100 AS id FROM shop.orders WHERE day = 'c'",
        table="shop.orders",
        master="local[1]",
    )

    validated = [task.execute(task_context(task)) for task in validate]
    compacted = compact.execute(task_context(compact))
    files = orders.inspect.files().num_rows
    first = by_function.execute(task_context(by_function))
    after_function = content(orders)
    second = by_query.execute(task_context(by_query))

    facts = {"rows": 2, "checked": 1, "failed": {"critical": 0, "warning": 1, "info": 0}}
    assert [{key: each[key] for key in facts} for each in validated] == [facts, facts]
    assert (compacted["version"], files) == (4, 3)
    assert (first["rows"], after_function) == (
        3,
        [("b", 1), ("b", 2), ("c", 7), ("it's", 10), ("it's", 11), ("it's", 12)],
    )
    assert (second["rows"], content(orders)) == (1, [("b", 1), ("b", 2), ("c", 7), ("it's", 107)])
