"""The wheel, installed into separate environments from which the checkout cannot be imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from stack_setup import environment_for_uv, find_uv
from storage_lib.distribution import DISTRIBUTION, VERSION

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[2]
TYPED_PROGRAM = """\
import pyarrow as pa  # type: ignore[import-untyped]

from storage_lib import DynamicTable, open_catalog

catalog = open_catalog("warehouse")
orders: DynamicTable = catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]), primary_key=["id"])
reveal_type(orders.inspect.latest_snapshot_id())
catalog.create_table(1, pa.schema([]))
"""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An environment with the wheel, and an empty working directory."""

    environment: Path
    directory: Path

    def run(self, program: str, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment as a user would, without the checkout's variables."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "AIRFLOW", "VIRTUAL"))}
        path = f"{self.environment / 'bin'}{os.pathsep}{kept.get('PATH', '')}"
        done = subprocess.run(
            [self.environment / "bin" / program, *arguments],
            env={**kept, "PATH": path, "AIRFLOW_HOME": str(self.directory / "airflow")},
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done


def install(wheel: Path, extras: str, directory: Path) -> Installed:
    """Create an environment with the wheel and its extras, in the versions of the lock file."""
    environment = directory / "environment"
    (directory / "work").mkdir()
    uv, python = find_uv(), environment / "bin" / "python"
    pins = CHECKOUT / "requirements.lock"
    wanted = f"{DISTRIBUTION}[{extras}] @ {wheel.as_uri()}"
    for words in (
        (uv, "venv", "--quiet", "--python", sys.executable, environment),
        (uv, "pip", "install", "--quiet", "--python", python, "--constraints", pins, wanted),
    ):
        done = subprocess.run(words, env=environment_for_uv(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Installed(environment=environment, directory=directory / "work")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the core, with the command line."""
    return install(wheel, "cli", tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def beside_airflow(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the requirements of a scheduler, an API server and a worker without sinks."""
    return install(wheel, "airflow,cli", tmp_path_factory.mktemp("airflow"))


def first_program_of_the_readme() -> tuple[str, str]:
    """Return the README's first program and its output."""
    found = re.search(r"```python\n(.*?)```\s*<!-- prints -->\s*```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    return found[1], found[2]


README = CHECKOUT / "README.md"


def test_the_first_program_of_the_readme_runs(installed: Installed) -> None:
    program, prints = first_program_of_the_readme()

    assert installed.run("python", "-c", program).stdout == prints


def test_the_command_line_says_its_version_and_lists_tables(installed: Installed) -> None:
    assert installed.run("dynamic-table", "--version").stdout.strip() == VERSION

    installed.run("python", "-c", TYPED_PROGRAM.split("reveal_type", maxsplit=1)[0].replace('"warehouse"', '"listed"'))
    assert "shop.orders" in installed.run("dynamic-table", "-w", "listed", "tables").stdout


def test_the_reference_of_options_comes_with_the_package(installed: Installed) -> None:
    assert "Number of buckets" in installed.run("dynamic-table", "options", "bucket").stdout

    program = "import storage_lib; print(storage_lib.describe_options('log.format')[0].default)"
    assert installed.run("python", "-c", program).stdout == "debezium-json\n"


def test_the_metadata_names_the_package_and_holds_the_readme(installed: Installed) -> None:
    program = (
        f"from importlib.metadata import metadata; said = metadata({DISTRIBUTION!r})\n"
        "print(said['Version']); print('Typing :: Typed' in said.get_all('Classifier'))\n"
        "print(said['Description-Content-Type']); print((said['Description'] or said.get_payload()).splitlines()[0])"
    )

    said = installed.run("python", "-c", program).stdout.splitlines()

    assert said == [VERSION, "True", "text/markdown", README.read_text().splitlines()[0]]


def test_a_program_of_a_user_is_type_checked(installed: Installed) -> None:
    program = installed.directory / "typed_program.py"
    program.write_text(TYPED_PROGRAM)
    python = installed.environment / "bin" / "python"

    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", python, "--cache-dir", os.devnull, program],
        cwd=installed.directory,
        capture_output=True,
        text=True,
        check=False,
    ).stdout

    assert 'Revealed type is "int | None"' in said
    [error] = [line for line in said.splitlines() if ": error: " in line]
    assert 'Argument 1 to "create_table"' in error


def test_what_is_missing_is_named_with_the_command_that_installs_it(installed: Installed) -> None:
    done = installed.run("dynamic-table", "-w", "warehouse", "sql", "-e", "SHOW TABLES", check=False)

    assert done.returncode == 1
    assert f"pip install '{DISTRIBUTION}[spark,sql]'" in done.stderr


@pytest.mark.airflow
def test_airflow_finds_the_plugin_the_provider_and_the_dags(beside_airflow: Installed) -> None:
    dags = beside_airflow.directory / "airflow" / "dags"
    beside_airflow.run("dynamic-table", "airflow", "install-dags", dags)
    program = (
        "from airflow import plugins_manager\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        "from airflow.providers_manager import ProvidersManager\n"
        "plugins, problems = plugins_manager._get_plugins()\n"
        "assert not problems, problems\n"
        "assert 'dynamic_table' in [each.name for each in plugins]\n"
        f"assert '{DISTRIBUTION}' in ProvidersManager().providers\n"
        f"bag = DagBag({str(dags)!r})\n"
        "assert not bag.import_errors, bag.import_errors\n"
        "print('DAGS', ' '.join(sorted(bag.dags)))\n"
    )

    said = beside_airflow.run("python", "-c", program).stdout.splitlines()[-1]

    names = (
        "change_refresh_status drop_old_partitions keep_tables_fresh maintain provision provision_tables publish "
        "refresh_materialized_tables reingest reprocess stream stream_tables sync sync_databases validate"
    )
    assert said == f"DAGS {names}"


def test_dags_of_the_same_name_that_differ_are_kept(installed: Installed, tmp_path: Path) -> None:
    installed.run("dynamic-table", "airflow", "install-dags", tmp_path)
    mine = tmp_path / "maintain_dynamic_tables.py"
    mine.write_text("# mine")
    (tmp_path / "tables.yaml").unlink()

    done = installed.run("dynamic-table", "airflow", "install-dags", tmp_path, check=False)

    assert done.returncode == 1
    assert str(mine) in done.stderr.replace("\n", "")
    assert mine.read_text() == "# mine"
    assert not (tmp_path / "tables.yaml").exists()

    installed.run("dynamic-table", "airflow", "install-dags", tmp_path, "--replace")
    assert mine.read_bytes() == (CHECKOUT / "dags" / mine.name).read_bytes()
