"""Batch and stream on a standalone cluster of separate processes: a master, two workers, their executors.

The workers' machines do not have this library: executors receive it by the commands of docs/deploy.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from stack_setup import environment_for_uv, find_uv
from tests.support.bare_python import bare_environment, make_bare_python
from tests.support.fenced_blocks import sections
from tests.support.spark_cluster import QUICK_EXECUTORS, spark_cluster
from tests.support.spark_processes import QUICK, REPOSITORY

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

JOB = REPOSITORY / "tests" / "support" / "spark_cluster_job.py"
MASTER = "spark://master:7077"


def commands(option: str) -> str:
    """Return the commands of docs/deploy.md that send the library with this option of ``spark-submit``."""
    [section] = [each for each in sections(REPOSITORY / "docs" / "deploy.md") if each.title == "Spark clusters"]
    [found] = [block.text for block in section.blocks if f" {option} " in block.text]
    assert MASTER in found
    return found


def run_on_cluster(
    shell: str, python: Path, table: DynamicTable, copy: DynamicTable, conf: dict[str, str], directory: Path
) -> dict[str, Any]:
    """Run a page's commands on a cluster whose Python is in the folder ``python``; return what the job prints."""
    work = directory / "work"
    work.mkdir()
    (work / "job.py").write_text(JOB.read_text())
    job = {
        "warehouse": table.address.warehouse,
        "catalog_options": dict(table.address.options),
        "table": table.name,
        "copy": copy.name,
    }
    (work / "job.json").write_text(json.dumps(job))
    settings = {**conf, "spark.executor.memory": "700m", "spark.executor.cores": "1", **QUICK_EXECUTORS}
    lines = [f"{key} {value}\n" for key, value in settings.items() if value]
    (work / "spark-defaults.conf").write_text("".join(lines))
    build: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", work]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)

    with spark_cluster(directory, workers=2, environment=bare_environment(python)) as cluster:
        driver = subprocess.run(
            ["bash", "-euc", 'pip() { "$UV" pip "$@"; }\n' + shell.replace(MASTER, cluster.master)],
            cwd=work,
            env={
                **environment_for_uv(),
                **bare_environment(Path(sys.executable).parent),
                **QUICK,
                "SPARK_CONF_DIR": str(work),
                "UV": str(find_uv()),
                "UV_PYTHON": sys.executable,
                "UV_CONSTRAINT": str(REPOSITORY / "requirements.lock"),
                "UV_FIND_LINKS": str(work),
                "UV_LINK_MODE": "copy",
            },
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
    assert driver.returncode == 0, driver.stderr[-4000:]
    said: dict[str, Any] = json.loads(driver.stdout.splitlines()[-1])
    return said


def test_executors_receive_the_wheel_with_the_job_and_do_all_work(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path
) -> None:
    table, copy = make_table(log=True, bucket=2), make_table("copy", bucket=2)
    python = make_bare_python(tmp_path / "python", has_dependencies=True)

    said = run_on_cluster(commands("--py-files"), python, table, copy, spark_conf, tmp_path)

    check(said, library="./spark_dynamic_tables.zip")


@pytest.mark.drill  # 500 MB of packages, in four copies
def test_executors_with_nothing_but_python_receive_an_archive_and_do_all_work(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path
) -> None:
    table, copy = make_table(log=True, bucket=2), make_table("copy", bucket=2)
    python = make_bare_python(tmp_path / "python", has_dependencies=False)

    said = run_on_cluster(commands("--archives"), python, table, copy, spark_conf, tmp_path)

    check(said, library="packages")


def check(said: dict[str, Any], *, library: str) -> None:
    """Check what the job printed; executors import the library from ``library`` in their working directories."""
    rows = {"load": 700, "upsert": 200, "stream": 200}
    assert said["merged"] == {"native_files": 0, "rows": rows}
    assert said["native"] == {"native_files": 2, "rows": rows}, "Spark itself reads one file of each bucket"
    assert said["copy"] == rows
    assert len({executor for executor, _ in said["executors"]}) == 2, "both workers' executors took part"
    for _, file in said["executors"]:
        assert f"{library}/storage_lib/__init__.py" in file
