"""Each folder has one subject: the modules at the root of a folder with subfolders are its facade."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PACKAGES = {
    home.parent.relative_to(CHECKOUT).as_posix()
    for root in ("storage_lib", "plugins/dynamic_table")
    for home in (CHECKOUT / root).rglob("__init__.py")
}
FACADES = {
    "storage_lib/catalog": {
        "added_log",
        "catalog",
        "open_catalog",
        "table_cache",
        "table_descriptor",
        "table_entries",
        "table_name",
    },
    "storage_lib/file_store": {
        "commit",
        "commit_message",
        "compact",
        "expire",
        "orphan_files",
        "read",
        "scan",
        "split",
        "store",
        "write",
    },
    "storage_lib/iceberg": {"iceberg_view", "view_refusals"},
    "storage_lib/io": {"after_commit", "environment", "file_io", "file_io_factory"},
    "storage_lib/table": {"dynamic_table"},
    "storage_lib/schema": {"table_schema"},
    "storage_lib/serve": {"serving_app", "serving_process"},
    "storage_lib/materialized": {"engine", "refresh_table"},
    "storage_lib/log_store": {"log_offsets", "log_store"},
    "storage_lib/spark": {"refresher", "streaming_sink"},
    "storage_lib/sql": {"session"},
    "plugins/dynamic_table": {
        "airflow_plugin",
        "dag_head",
        "get_provider_info",
        "hook",
        "refresh_dags",
        "retry_policy",
        "table_events",
        "table_pools",
    },
}


def test_a_folder_holds_its_facade_and_the_folders_of_its_subjects() -> None:
    modules = {folder: {path.stem for path in (CHECKOUT / folder).glob("*.py")} - {"__init__"} for folder in FACADES}

    assert modules == FACADES


def test_a_folder_has_at_most_twenty_modules() -> None:
    # Users import each operator by its own module, so their folder is an index.
    modules = {
        folder: len(list((CHECKOUT / folder).glob("*.py"))) - 1
        for folder in PACKAGES - {"plugins/dynamic_table/operators"}
    }

    assert {folder: count for folder, count in modules.items() if count > 20} == {}


def test_every_folder_of_code_is_a_package() -> None:
    folders = {
        module.parent.relative_to(CHECKOUT).as_posix()
        for root in ("storage_lib", "plugins/dynamic_table")
        for module in (CHECKOUT / root).rglob("*.py")
    }

    assert folders == PACKAGES


def test_every_folder_of_a_subject_says_what_it_holds() -> None:
    homes = [CHECKOUT / each / "__init__.py" for each in PACKAGES if Path(each).parent.as_posix() in FACADES]

    silent = [home.parent for home in homes if not ast.get_docstring(ast.parse(home.read_text(encoding="utf-8")))]
    assert sorted(folder.relative_to(CHECKOUT).as_posix() for folder in silent) == []


def test_the_layers_of_every_folder_with_subfolders_are_a_contract() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = [each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    checked = {container for each in contracts if each["exhaustive"] for container in each["containers"]}
    parents = {Path(package).parent.as_posix() for package in PACKAGES} & PACKAGES

    assert {parent.removeprefix("plugins/").replace("/", ".") for parent in parents} <= checked
