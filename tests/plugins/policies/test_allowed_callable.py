"""A form names a function, and the task calls it only if the configuration allows its module."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from dynamic_table.operators.process_changes import ProcessChangesOperator
from dynamic_table.operators.read_table_declarations import ReadTableDeclarationsOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.policies.allowed_callable import load_allowed_callable
from storage_lib.errors import InvalidInputError
from tests.support.recording_table import RecordingTable
from tests.support.task_context import task_context

SETTING = "AIRFLOW__DYNAMIC_TABLE__CALLABLE_MODULES"
MODULES = {
    "allowed_rows_a.py": "import subprocess\nfrom functools import partial\nfrom subprocess import run\n"
    "def rows(): return 'a'\nbound = partial(run, ['true'])\n",
    "allowed_rows_b/__init__.py": "",
    "allowed_rows_b/inner.py": "from allowed_rows_a import rows\ndef more(): return 'b'\n",
    "allowed_rows_c/inner.py": "def namespaced(): return 'c'\n",
}


@pytest.fixture
def dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a DAGs folder with modules and put it on the path, as in a worker."""
    folder = tmp_path / "dags"
    for name, text in MODULES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(folder))
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.syspath_prepend(str(folder))
    for name in [name for name in sys.modules if name.startswith("allowed_rows_")]:
        monkeypatch.delitem(sys.modules, name)
    return folder


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("allowed_rows_a:rows", "a"),
        ("allowed_rows_b.inner:more", "b"),
        ("allowed_rows_b.inner:rows", "a"),
        ("allowed_rows_c.inner:namespaced", "c"),
    ],
)
def test_a_function_that_the_dags_folder_defines_is_allowed_by_default(dags: Path, path: str, result: str) -> None:
    assert load_allowed_callable(path)() == result


@pytest.mark.parametrize(
    "path",
    [
        "subprocess:run",
        "os:system",
        "builtins:eval",
        "builtins:exec",
        "importlib:import_module",
        "storage_lib:open_catalog",
        "__main__:main",
        "no_such_module_here:f",
        "allowed_rows_a:run",
        "allowed_rows_a:bound",
        "allowed_rows_a:partial",
    ],
)
def test_any_other_function_is_refused_with_the_setting_that_would_allow_it(dags: Path, path: str) -> None:
    with pytest.raises(InvalidInputError, match=r"may not be called: .*\[dynamic_table\] callable_modules"):
        load_allowed_callable(path)


def test_a_module_that_is_not_allowed_is_not_even_imported(
    dags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "side_effect_here.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(elsewhere))

    with pytest.raises(InvalidInputError, match="module 'side_effect_here' is not allowed"):
        load_allowed_callable("side_effect_here:f")


def test_a_package_with_a_part_outside_of_the_folder_is_not_of_the_folder(
    dags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "allowed_rows_c"
    other.mkdir(parents=True)
    (other / "planted.py").write_text("def f(): ...")
    monkeypatch.syspath_prepend(str(tmp_path / "other"))

    with pytest.raises(InvalidInputError, match="is not allowed"):
        load_allowed_callable("allowed_rows_c.planted:f")


def test_a_folder_that_is_a_link_holds_its_modules(dags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "current").symlink_to(dags)
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "current"))

    assert load_allowed_callable("allowed_rows_a:rows")() == "a"


def test_the_setting_names_modules_and_single_functions(dags: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "allowed_rows_b, json.decoder shutil:which")

    assert load_allowed_callable("allowed_rows_b.inner:more")() == "b"
    assert load_allowed_callable("json.decoder:JSONDecoder") is json.JSONDecoder
    assert load_allowed_callable("shutil:which") is shutil.which
    for path in ("allowed_rows_a:rows", "allowed_rows_b.inner:rows", "json:loads", "shutil:rmtree"):
        with pytest.raises(InvalidInputError, match="may not be called"):
            load_allowed_callable(path)


def test_an_empty_setting_allows_nothing(dags: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "")

    with pytest.raises(InvalidInputError, match="may not be called"):
        load_allowed_callable("allowed_rows_a:rows")


@pytest.mark.parametrize(
    "task",
    [
        ReprocessPartitionsOperator(task_id="a", table="db.t", partitions=[{"dt": "a"}], rows="subprocess:run"),
        ProcessChangesOperator(task_id="b", table="db.t", process="subprocess:run"),
        ReadTableDeclarationsOperator(task_id="c", source="subprocess:run"),
    ],
    ids=lambda task: type(task).__name__,
)
def test_every_operator_asks_the_setting_in_the_worker(
    dags: Path, table: RecordingTable, task: ReprocessPartitionsOperator
) -> None:
    with pytest.raises(InvalidInputError, match="'subprocess:run' may not be called"):
        task.execute(task_context(task, folder=dags))
    assert table.calls == []


def test_expectations_are_asked_of_allowed_functions_only(dags: Path) -> None:
    from dynamic_table.quality.expectation_suites import expectations_of

    with pytest.raises(InvalidInputError, match="'subprocess:run' may not be called"):
        expectations_of("subprocess:run", "db.t", dags)
