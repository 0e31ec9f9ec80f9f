"""Folders are subjects: what lies at the root of a folder with subfolders is its facade."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
FACADES = {
    "storage_lib/table": {
        "direct_writes",
        "dynamic_table",
        "read_builder",
        "row_verbs",
        "table_inspection",
        "table_maintenance",
        "table_reads",
        "table_writes",
        "write_builder",
    },
    "storage_lib/schema": {"table_schema"},
    "storage_lib/log_store": {"log_offsets", "log_store"},
    "storage_lib/spark": {"streaming_sink"},
    "storage_lib/sql": {"session"},
    "plugins/dynamic_table": {
        "airflow_plugin",
        "dag_head",
        "get_provider_info",
        "hook",
        "retry_policy",
        "table_events",
        "table_pools",
    },
}


@pytest.mark.parametrize("folder", FACADES)
def test_a_folder_holds_its_facade_and_the_folders_of_its_subjects(folder: str) -> None:
    modules = {path.stem for path in (CHECKOUT / folder).glob("*.py")} - {"__init__"}

    assert modules == FACADES[folder]


@pytest.mark.parametrize("folder", FACADES)
def test_every_folder_of_a_subject_says_what_it_is_and_has_no_folders_of_its_own(folder: str) -> None:
    for path in sorted((CHECKOUT / folder).iterdir()):
        modules = sorted(path.rglob("*.py")) if path.is_dir() else []
        if not modules:
            continue  # left behind by the interpreter
        home = path / "__init__.py"
        assert home.exists(), f"{path} is not a package"
        assert ast.get_docstring(ast.parse(home.read_text())), f"{home} does not say what the folder holds"
        assert {module.parent for module in modules} == {path}
