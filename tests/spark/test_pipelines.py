"""The pipeline of docs/pipelines.md, run by ``spark-pipelines`` as its page says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("grpc_status")

from storage_lib import open_catalog
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.deep_tests import thinned
from tests.support.fenced_blocks import sections
from tests.support.spark_features import needs_spark
from tests.support.spark_processes import REPOSITORY, warm_environment

pytestmark = [pytest.mark.spark, pytest.mark.integration, needs_spark(SparkFeature.PIPELINES)]

(TABLES,), (SPEC, SHOP), (CUSTOMERS_TABLE, CUSTOMERS) = (
    [block.text for block in section.blocks]
    for section in sections(REPOSITORY / "docs" / "pipelines.md")
    if section.title in ("Tables", "Pipeline", "Change data capture")
)
LOCAL = """configuration:
  spark.sql.shuffle.partitions: "2"
"""


def run_pipeline(project: Path) -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    ran = subprocess.run(
        [home / "bin" / "spark-pipelines", "run"],
        cwd=project,
        env={**warm_environment(), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = (line for line in (ran.stdout + ran.stderr).splitlines() if not line.startswith("\tat "))
    assert ran.returncode == 0, "\n".join(said)[-8000:]


def rows_of(directory: Path) -> list[dict[str, object]]:
    return sorted(pq.read_table(directory).to_pylist(), key=lambda row: str(row["category"]))


def put_events(directory: Path, *events: tuple[int, str | None, str, int]) -> None:
    """Add a file of events ``(id, name, op, version)``."""
    directory.mkdir(exist_ok=True)
    lines = (json.dumps(dict(zip(("id", "name", "op", "version"), event, strict=True))) for event in events)
    Path(directory, f"{len(list(directory.iterdir()))}.json").write_text("\n".join(lines))


@pytest.mark.parametrize("runs", thinned([1, 2]))
def test_a_pipeline_reads_a_table_follows_its_changes_and_applies_late_events_in_their_order(
    tmp_path: Path, runs: int
) -> None:
    def here(text: str) -> str:
        return text.replace("/data/", f"{tmp_path}/")

    (tmp_path / "transformations").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(here(SPEC) + LOCAL)
    (tmp_path / "transformations" / "shop.py").write_text(here(SHOP))
    (tmp_path / "transformations" / "customers.py").write_text(here(CUSTOMERS))
    for program in (TABLES, CUSTOMERS_TABLE):
        exec(compile(here(program), "pipelines.md", "exec"), {})  # noqa: S102  the page's own
    catalog = open_catalog(str(tmp_path / "warehouse"))
    orders, cents = catalog.load_table("shop.orders"), catalog.load_table("shop.order_cents")
    customers, events = catalog.load_table("shop.customers"), tmp_path / "customer-events"
    put_events(events, (1, "Ann", "INSERT", 1), (1, None, "DELETE", 4), (2, "Bob", "INSERT", 2), (3, "Cy", "INSERT", 1))

    run_pipeline(tmp_path)

    assert cents.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "cents": 400}, {"id": 2, "cents": 900}]
    (revenue,) = tmp_path.rglob("spark-warehouse/revenue")
    assert rows_of(revenue) == [{"category": "cup", "total": 9}, {"category": "tea", "total": 4}]
    assert customers.to_arrow().sort_by("id").to_pylist() == [
        {"id": 2, "name": "Bob", "version": 2},
        {"id": 3, "name": "Cy", "version": 1},
    ]

    if runs == 1:
        return
    # Spark's catalog in memory has forgotten the view, but would not overwrite its files.
    shutil.rmtree(revenue)
    orders.delete("id = 1")
    orders.append([{"id": 3, "category": "tea", "amount": 1}])
    customers.compact()
    put_events(events, (1, "Anne", "UPDATE", 3), (2, "Rob", "UPDATE", 1), (3, "Cyd", "UPDATE", 2))
    run_pipeline(tmp_path)

    assert cents.to_arrow().sort_by("id").to_pylist() == [{"id": 2, "cents": 900}, {"id": 3, "cents": 100}]
    assert len(cents.inspect.commits()) == 2
    assert customers.to_arrow().sort_by("id").to_pylist() == [
        {"id": 2, "name": "Bob", "version": 2},
        {"id": 3, "name": "Cyd", "version": 2},
    ]
