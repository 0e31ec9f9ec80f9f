"""`dynamic-table doctor --environment`: what is installed, and what of it does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from storage_lib.cli.app import app
from storage_lib.cli.environment_check import examine_environment
from storage_lib.cli.finding import Finding
from storage_lib.distribution import DISTRIBUTION


def found(what: str) -> Finding:
    """Return the finding about one thing; there is exactly one."""
    (finding,) = (each for each in examine_environment() if each.what == what)
    return finding


def install(directory: Path, name: str, version: str, needs: str = "") -> None:
    """Make it look as if a distribution was installed in a directory."""
    metadata = directory / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}", encoding="utf-8")


def test_what_the_tests_run_in_fits() -> None:
    wrong = [each for each in examine_environment() if not each.is_well]
    assert not wrong
    assert "pyarrow" in found("core").text


@pytest.mark.parametrize(("extra", "package", "needed"), [("duckdb", "duckdb", ">=2"), ("core", "pyarrow", ">=23")])
def test_a_package_of_another_version_is_named_with_the_version_that_is_needed(
    extra: str, package: str, needed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, package, "0.9")
    monkeypatch.syspath_prepend(tmp_path)
    finding = found(extra)
    assert not finding.is_well
    assert f"{package} 0.9 is installed, {package}{needed}" in finding.text


def test_a_package_is_named_as_missing_if_an_extra_of_a_package_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``pyspark`` alone is not enough for the extra ``connect``, which needs ``pyspark[connect]``."""
    needs = 'Requires-Dist: package-of-servers; extra == "connect"\nRequires-Dist: package-of-tests; extra == "tests"\n'
    install(tmp_path, "pyspark", "4.2.0", needs)
    monkeypatch.syspath_prepend(tmp_path)

    assert "package-of-servers not installed: pip install" in found("connect").text
    assert "package-of" not in found("spark").text
    assert "package-of-tests" not in found("connect").text


def test_code_of_another_version_than_the_installed_one_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage_lib.cli.environment_check.VERSION", "99.0")
    finding = found(DISTRIBUTION)
    assert not finding.is_well
    assert "the code that runs" in finding.text


def test_a_spark_home_of_another_version_than_pyspark_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert "no jars/spark-core_*.jar" in found("SPARK_HOME").text
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    finding = found("SPARK_HOME")
    assert not finding.is_well
    assert "has Spark 3.5, but pyspark is" in finding.text


def test_the_command_prints_the_findings_and_fails_if_one_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = CliRunner()
    ran = runner.invoke(app, ["--json", "doctor", "--environment"])
    assert ran.exit_code == 0
    assert {"python", "core", "java"} <= {each["what"] for each in json.loads(ran.stdout)}
    install(tmp_path, "duckdb", "0.9")
    monkeypatch.syspath_prepend(tmp_path)
    assert runner.invoke(app, ["doctor", "--environment"]).exit_code == 1
    refused = runner.invoke(app, ["doctor", "--environment", "--deep"])
    assert refused.exit_code == 1
