"""The wheel in each corner: its metadata resolves there, and its code runs in the environments of `make corners`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from itertools import product
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from corners import CORNERS
from stack_setup import LOCAL, environment_for_uv, find_uv
from storage_lib.distribution import DISTRIBUTION, VERSION
from storage_lib.spark.versions.fitting_spark import SPARK_VERSIONS

pytestmark = [pytest.mark.integration, pytest.mark.deep]

EXTRAS = ("airflow", "cli", "duckdb", "kafka", "quality", "spark", "sql")
SPARKS = [".".join(map(str, each)) for each in SPARK_VERSIONS]
AIRFLOWS = ("3.1", "3.2", "3.3")
"""Those that the extra installs."""
PROGRAM = """\
import sys
import pyarrow as pa
import storage_lib
table = storage_lib.open_catalog(sys.argv[1]).create_table("shop.orders", pa.schema([("id", pa.int64())]))
table.append(pa.table({"id": [1, 2]}))
print(table.count(), storage_lib.__file__)
"""


@pytest.fixture(scope="module")
def requirements(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the wheel and its requirements as direct ones, of which uv takes the lowest."""
    with zipfile.ZipFile(wheel) as archive:
        about = Metadata.from_email(archive.read(f"{wheel.name.rsplit('-', 3)[0]}.dist-info/METADATA"))
    wanted = {
        f"{each.name}{each.specifier}"
        for each in about.requires_dist or ()
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in EXTRAS)
    }
    path = tmp_path_factory.mktemp("requirements") / "wheel.in"
    path.write_text("\n".join([f"{DISTRIBUTION}[{','.join(EXTRAS)}] @ {wheel.as_uri()}", *sorted(wanted)]) + "\n")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel's files, as pip would put them into an environment."""
    path = tmp_path_factory.mktemp("unpacked_wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(path)
    return path


@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
@pytest.mark.parametrize(("spark", "airflow"), list(product(SPARKS, AIRFLOWS)))
def test_the_metadata_resolves_in_each_corner(spark: str, airflow: str, resolution: str, requirements: Path) -> None:
    pins = requirements.with_name(f"{spark}_{airflow}_{resolution}.in")
    pins.write_text(f"pyspark=={spark}.*\napache-airflow=={airflow}.*\n")
    words = (find_uv(), "pip", "compile", "--no-header", "--no-annotate", "--quiet", "--python", sys.executable)

    done = subprocess.run(
        [*words, "--resolution", resolution, requirements, pins],
        env=environment_for_uv(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"(?m)^([\w-]+)==(\S+)", done.stdout))
    assert found["pyspark"].startswith(f"{spark}.")
    assert found["apache-airflow"].startswith(f"{airflow}.")


@pytest.mark.parametrize("corner", [each.name for each in CORNERS])
def test_the_wheel_runs_in_the_environment_of_the_corner(corner: str, unpacked: Path, tmp_path: Path) -> None:
    """The checkout is installed there, editable; the wheel's files are before it in Python's path."""
    programs = LOCAL / corner / "bin"
    if not (programs / "python").exists():
        pytest.skip(f"{corner} is not installed: see `make corners`")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "AIRFLOW", "VIRTUAL"))}

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**kept, "PYTHONPATH": str(unpacked), "COLUMNS": "200"}
        return subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    wrote = run(programs / "python", "-c", PROGRAM, tmp_path / "warehouse")
    assert wrote.stdout.split() == ["2", str(unpacked / "storage_lib" / "__init__.py")], wrote.stderr

    if run(programs / "python", "-c", "import packaging, rich, typer").returncode:
        return  # `core` has no command line
    said = run(programs / "dynamic-table", "doctor", "--environment")
    wrong = [line.split()[0] for line in said.stdout.splitlines() if re.match(r"\S+ +False ", line)]
    # A beta of Airflow is on trial, so the extra does not take it.
    assert wrong == (["airflow"] if corner == "airflow_3_4" else []), said.stdout + said.stderr
    assert re.search(rf"(?m)^{DISTRIBUTION} +True +{re.escape(VERSION)}\b", said.stdout), said.stdout + said.stderr
