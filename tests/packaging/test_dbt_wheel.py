"""The dbt adapter's wheel: of the same release as the library, and installed from an index that has only the two."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from stack_setup import environment_for_uv, find_uv
from storage_lib.distribution import DISTRIBUTION, VERSION

CHECKOUT = Path(__file__).resolve().parents[2]
DBT = CHECKOUT / "dbt"
PROFILE = """
shop:
  target: dev
  outputs:
    dev: {type: dynamic_tables, warehouse: warehouse, schema: shop, threads: 1, spark: {spark.driver.memory: 512m}}
"""
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\nmodels: {shop: {+materialized: materialized_table}}\n",
    "profiles.yml": PROFILE,
    "seeds/orders.csv": "id,item,amount\n1,pen,2\n2,ink,9\n3,pen,3\n",
    "models/items.sql": "select item, sum(amount) as amount from {{ ref('orders') }} group by item",
}
PROGRAM = """
from storage_lib import open_catalog
rows = open_catalog("warehouse").load_table("shop.items").to_arrow().to_pylist()
print(sorted(tuple(row.values()) for row in rows))
"""


def test_the_adapter_has_the_version_of_the_library_and_requires_it() -> None:
    project = tomllib.loads((DBT / "pyproject.toml").read_text())["project"]
    shown = re.search(r'version = "(.*)"', (DBT / "dbt/adapters/dynamic_tables/__version__.py").read_text())

    assert shown is not None
    assert {project["version"], shown[1]} == {VERSION}
    assert f"{DISTRIBUTION}[duckdb,spark,sql]=={VERSION}" in project["dependencies"]


@pytest.mark.deep
@pytest.mark.timeout(1800)  # without uv's cache, it downloads half a gigabyte
@pytest.mark.integration
def test_the_two_wheels_install_into_an_empty_environment_and_build_a_project(
    wheel: Path, dbt_wheel: Path, tmp_path: Path
) -> None:
    index, environment = tmp_path / "index", tmp_path / "environment"
    index.mkdir()
    for each in (wheel, dbt_wheel):
        shutil.copy(each, index)
    with zipfile.ZipFile(dbt_wheel) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"dbt", f"dbt_dynamic_tables-{VERSION}.dist-info"}

    # The temporary directory may be in memory: links to uv's cache save it a gigabyte.
    uv, settings = find_uv(), {**environment_for_uv(), "UV_LINK_MODE": "symlink"}
    wanted = f"dbt-dynamic-tables=={VERSION}"
    for words in (
        (uv, "venv", "--quiet", "--python", sys.executable, environment),
        (uv, "pip", "install", "--quiet", "--python", environment / "bin" / "python", "--find-links", index, wanted),
    ):
        done = subprocess.run(words, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    work = tmp_path / "work"
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
    command = (environment / "bin" / "dbt", "build", "--profiles-dir", ".")
    done = subprocess.run(command, cwd=work, env=kept, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    read = subprocess.run(
        (environment / "bin" / "python", "-c", PROGRAM), cwd=work, env=kept, capture_output=True, text=True, check=True
    )
    assert read.stdout.strip() == "[('ink', 9), ('pen', 5)]"
