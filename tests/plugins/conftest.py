"""Airflow without a database: its home is temporary, connections come from the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.own_airflow_home import own_airflow_home

# Before the first import of Airflow, which reads these variables once.
os.environ["AIRFLOW_HOME"] = own_airflow_home()
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")
# Modules with the tests' row callables; some represent a module of a DAGs folder.
os.environ.setdefault(
    "AIRFLOW__DYNAMIC_TABLE__CALLABLE_MODULES", "dags-folder, tests, rows_for_tests, changes_for_tests"
)
# The minimum is for real schedulers; a test with a fake clock covers it.
os.environ.setdefault("AIRFLOW__DYNAMIC_TABLE__DEFERRAL_SECONDS_MIN", "0")

import pytest

if TYPE_CHECKING:
    from tests.support.recording_table import RecordingTable


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty warehouse of the default connection."""
    folder = tmp_path / "warehouse"
    extra = {"warehouse": str(folder), "publish_pages": True, "options": {"log.system": "none"}}
    connection = json.dumps({"conn_type": "dynamic_table", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", connection)
    return folder


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> RecordingTable:
    """Return the table that every hook opens; it records how the operators call it."""
    from dynamic_table.hook import DynamicTableHook
    from tests.support.recording_table import RecordingTable

    recording = RecordingTable()
    monkeypatch.setattr(DynamicTableHook, "load_table", lambda _hook, _name: recording)
    return recording
