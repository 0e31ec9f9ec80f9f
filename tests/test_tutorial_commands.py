"""The shell commands of the tutorials run as shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from storage_lib import open_catalog

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.md"))
SHELL_BLOCK = re.compile(r"^(```[a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMPONENTS = ("dag-processor", "scheduler", "triggerer", "api-server")
# These change the environment or do not return: tests/packaging installs the wheel, tests/dags starts an Airflow,
# tests/cdc/test_tutorial.py starts the servers of `make capture`.
NOT_RUN = ("pip install ", "make ", "airflow db migrate", *(f"airflow {each}" for each in COMPONENTS))


def shell_blocks(page: Path) -> list[list[str]]:
    return [text.splitlines() for fence, text in SHELL_BLOCK.findall(page.read_text()) if fence in ("```", "```bash")]


def blocks_that_run() -> list[object]:
    kept = [
        (page, [line for line in block if not line.startswith(NOT_RUN)])
        for page in TUTORIALS
        for block in shell_blocks(page)
    ]
    return [pytest.param(lines, id=page.stem) for page, lines in kept if lines]


@pytest.mark.parametrize("lines", blocks_that_run())
def test_the_shell_commands_of_a_tutorial_succeed(lines: list[str], tmp_path: Path) -> None:
    ran = run(lines, tmp_path)

    assert ran.returncode == 0, ran.stderr


def test_the_airflow_tutorial_installs_dags_and_a_connection_to_the_warehouse(tmp_path: Path) -> None:
    open_catalog(str(tmp_path / "warehouse")).create_table("shop.orders", {"id": "BIGINT"}, primary_key=["id"])
    (lines,) = [
        [line for line in block if not line.startswith(NOT_RUN)]
        for page in TUTORIALS
        for block in shell_blocks(page)
        if any("install-dags" in line for line in block)
    ]

    ran = run([*lines, 'printf %s "$AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT" > connection.json'], tmp_path)

    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "airflow" / "dags" / "maintain_dynamic_tables.py").is_file()
    connection = json.loads((tmp_path / "connection.json").read_text())
    assert connection["conn_type"] == "dynamic_table"
    assert open_catalog(connection["extra"]["warehouse"]).load_table("shop.orders").schema.fields[0].name == "id"


def test_the_airflow_tutorial_starts_nothing_that_listens_beyond_loopback() -> None:
    """Airflow's servers of logs listen on all interfaces; the one of docker/local is tested with these options."""
    lines = [line for page in TUTORIALS for block in shell_blocks(page) for line in block if "airflow " in line]
    started = {line.split()[1]: line for line in lines if line.startswith("airflow ")}

    assert set(started) == {"db", *COMPONENTS}
    assert all("--skip-serve-logs" in started[each] for each in ("scheduler", "triggerer"))
    assert any("AIRFLOW__API__HOST=127.0.0.1" in page.read_text() for page in TUTORIALS)


def run(lines: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
