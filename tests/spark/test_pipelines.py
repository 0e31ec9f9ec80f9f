"""The pipeline of docs/pipelines.md, run by ``spark-pipelines`` as its page says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from storage_lib import open_catalog
from tests.support.fenced_blocks import sections
from tests.support.spark_processes import REPOSITORY, clean_environment

pytest.importorskip("grpc_status")
pytestmark = [pytest.mark.spark, pytest.mark.integration]

TABLES, PIPELINE = (
    [block.text for block in section.blocks]
    for section in sections(REPOSITORY / "docs" / "pipelines.md")
    if section.title in ("Tables", "Pipeline")
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
        env={**clean_environment(), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = (line for line in (ran.stdout + ran.stderr).splitlines() if not line.startswith("\tat "))
    assert ran.returncode == 0, "\n".join(said)[-8000:]


def test_a_pipeline_reads_a_table_and_follows_its_changes_into_another(tmp_path: Path) -> None:
    (spec, program), (tables,) = PIPELINE, TABLES
    (tmp_path / "transformations").mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(spec.replace("/data/", f"{tmp_path}/") + LOCAL)
    (tmp_path / "transformations" / "shop.py").write_text(program.replace("/data/", f"{tmp_path}/"))
    exec(compile(tables.replace("/data/", f"{tmp_path}/"), "pipelines.md", "exec"), {})  # noqa: S102  the page's own
    catalog = open_catalog(str(tmp_path / "warehouse"))
    orders, cents = catalog.load_table("shop.orders"), catalog.load_table("shop.order_cents")

    run_pipeline(tmp_path)

    assert cents.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "cents": 400}, {"id": 2, "cents": 900}]
    (revenue,) = tmp_path.rglob("spark-warehouse/revenue")
    assert rows_of(revenue) == [{"category": "cup", "total": 9}, {"category": "tea", "total": 4}]

    # Spark's catalog in memory has forgotten the view, but would not overwrite its files.
    shutil.rmtree(revenue)
    orders.delete("id = 1")
    orders.append([{"id": 3, "category": "tea", "amount": 1}])
    run_pipeline(tmp_path)

    assert cents.to_arrow().sort_by("id").to_pylist() == [{"id": 2, "cents": 900}, {"id": 3, "cents": 100}]
    assert len(cents.inspect.commits()) == 2


def rows_of(directory: Path) -> list[dict[str, object]]:
    return sorted(pq.read_table(directory).to_pylist(), key=lambda row: str(row["category"]))
