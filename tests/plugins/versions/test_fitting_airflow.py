"""An Airflow that the plugin does not run on is named when the plugin is imported, before anything is written."""

from __future__ import annotations

from pathlib import Path

import airflow
import pytest

from dynamic_table.versions import fitting_airflow
from dynamic_table.versions.fitting_airflow import AIRFLOW_VERSIONS, installed_version, refuse_unfitting_airflow


@pytest.mark.parametrize("version", ["2.11.2", "3.0.6", "3.5.0", "3.5.0b2", "4.0.0", "without its core"])
def test_another_version_is_refused_by_its_number_and_place(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting_airflow, "installed_release", lambda: version)

    with pytest.raises(ImportError) as refused:
        refuse_unfitting_airflow()

    assert str(refused.value) == (
        f"Airflow {version} is installed, in {Path(airflow.__file__).parent}; dynamic tables need 3.1 to 3.4: "
        "pip install 'spark-dynamic-tables[airflow]'"
    )


@pytest.mark.parametrize("version", ["3.1.0", "3.1.8", "3.2.2", "3.3.2", "3.3.9rc1", "3.4.0b2"])
def test_every_release_of_a_version_is_admitted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting_airflow, "installed_release", lambda: version)

    refuse_unfitting_airflow()

    assert installed_version() in AIRFLOW_VERSIONS
