"""Spark's own readers on a table in S3, with Hadoop's client of it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.spark.versions.spark_feature import installed_since
from tests.support import s3_driver
from tests.support.line_servant import LineServant
from tests.support.spark_jars import SPARK_S3
from tests.support.spark_processes import warm_environment

if TYPE_CHECKING:
    from local_s3 import LocalS3

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not SPARK_S3.exists(), reason="Spark's client of S3 is missing; run `make servers`"),
]

COLUMNS = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServant]:
    """Start one driver, whose own client of S3 has a wrong key for the bucket ``locked``."""
    of_bucket = "spark.hadoop.fs.s3a.bucket.locked"
    conf = {f"{of_bucket}.secret.key": "wrong", f"{of_bucket}.retry.limit": "1"}
    command = [sys.executable, s3_driver.__file__, json.dumps(conf)]
    log = tmp_path_factory.mktemp("s3-driver") / "driver.log"
    servant = LineServant(command, log, environment=warm_environment())
    yield servant
    servant.close()


def answers(driver: LineServant, warehouse: str, options: dict[str, str], *queries: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = driver.ask({"warehouse": warehouse, "catalog_options": options, "queries": queries})[
        "answers"
    ]
    return found


@pytest.mark.skipif(not installed_since(4, 1), reason="Spark's client of S3 of `make servers` needs Hadoop 3.4.2")
def test_files_in_s3_are_read_by_sparks_own_readers_and_merged_ones_by_tasks(
    s3: LocalS3, driver: LineServant, tmp_path: Path
) -> None:
    warehouse = f"s3://lake{tmp_path}"
    catalog = open_catalog(warehouse, s3.options)
    options = {"bucket": "2", "write-only": "true"}
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id", "dt"], partition_by=["dt"], options=options)
    days = ["2026-01-01", "2026-01-02"]
    table.append(pa.table([[*range(100)], [days[i % 2] for i in range(100)], ["old"] * 100], schema=COLUMNS))
    table.append(pa.table([[*range(50, 60)], [days[0]] * 10, ["new"] * 10], schema=COLUMNS))

    by_day, few, whole = answers(
        driver,
        warehouse,
        s3.options,
        "SELECT count(*) AS n, max(v) AS v FROM db.t WHERE dt = '2026-01-02'",
        "SELECT id, dt, v FROM db.t WHERE id = 51 ORDER BY dt",
        "SELECT count(*) AS n, count_if(v = 'new') AS new FROM db.t",
    )

    assert by_day["rows"] == [{"n": 50, "v": "old"}]
    assert re.search(r"snapshot 2: 2 files \([\d,]+ bytes\) by Spark's readers, 0 files", by_day["plan"])
    assert few["rows"] == [
        {"id": 51, "dt": "2026-01-01", "v": "new"},
        {"id": 51, "dt": "2026-01-02", "v": "old"},
    ]
    # Of ten new keys, the even ones had no row on that day.
    assert whole["rows"] == [{"n": 105, "new": 10}]
    assert "s3a://lake" in whole["plan"]
    assert re.search(r"snapshot 2: [1-9] files \([\d,]+ bytes\) by Spark's readers, [1-9] files", whole["plan"])
    assert "local-secret" not in by_day["plan"] + whole["plan"]


def test_a_wrong_key_is_an_error_that_names_the_store_and_no_answer(
    s3: LocalS3, driver: LineServant, tmp_path: Path
) -> None:
    warehouse = f"s3://lake{tmp_path}"
    table = open_catalog(warehouse, s3.options).create_table("db.t", COLUMNS)
    table.append(pa.table([[1], ["d"], ["v"]], schema=COLUMNS))

    (answer,) = answers(driver, warehouse, {**s3.options, "s3.secret-key": "wrong"}, "SELECT count(*) FROM db.t")

    assert answer["error"].startswith("InvalidInputError: can't list s3://lake")
    assert "403 Forbidden" in answer["error"]
    assert "Check the URL, the credentials" in answer["error"]


def test_a_key_that_only_sparks_client_has_wrong_leaves_the_files_to_tasks(
    s3: LocalS3, driver: LineServant, tmp_path: Path
) -> None:
    s3.create_bucket("locked")
    warehouse = f"s3://locked{tmp_path}"
    table = open_catalog(warehouse, s3.options).create_table("db.t", COLUMNS)
    table.append(pa.table([[1], ["d"], ["v"]], schema=COLUMNS))

    (answer,) = answers(driver, warehouse, s3.options, "SELECT count(*) AS n FROM db.t")

    assert answer["rows"] == [{"n": 1}]
    assert "snapshot 1: 0 files (0 bytes) by Spark's readers, 1 files (" in answer["plan"]
