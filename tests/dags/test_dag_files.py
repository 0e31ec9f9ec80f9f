"""Every DAG parses, survives serialisation, and follows the project's conventions."""

from __future__ import annotations

import ast
import copy
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from dynamic_table.dag_head import OWNER
from dynamic_table.retry_policy import StorageRetryPolicy
from dynamic_table.table_events import TABLE_EVENTS
from dynamic_table.versions.airflow_feature import AirflowFeature
from tests.support.airflow_names import DagBag, DagSerialization

CHECKOUT = Path(__file__).resolve().parents[2]
DAG_FILES = sorted((CHECKOUT / "dags").glob("*.py"))
# Airflow's own file discovery uses a name that pathspec has renamed.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")]

DAG_IDS = {
    "provision",
    "provision_tables",
    "publish",
    "stream",
    "stream_tables",
    "refresh_materialized_tables",
    "change_refresh_status",
    "keep_tables_fresh",
    "maintain",
    "reprocess",
    "reingest",
    "sync",
    "sync_databases",
    "drop_old_partitions",
    "validate",
}


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    """Return all DAGs of the folder."""
    bag = DagBag(str(CHECKOUT / "dags"))
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_the_folder_holds_these_dags(dags: dict[str, DAG]) -> None:
    assert set(dags) == DAG_IDS


def test_every_dag_survives_serialisation(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        restored = DagSerialization.from_dict(DagSerialization.to_dict(dag))

        assert set(restored.task_dict) == set(dag.task_dict)


def test_every_task_has_the_retry_policy_and_tries_left(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        for task in dag.tasks:
            arguments = getattr(task, "partial_kwargs", None) or vars(task)
            if not AirflowFeature.RETRY_POLICIES.is_here:
                # Airflow itself knows no policy: our operators take it from these arguments.
                arguments = {**dag.default_args, **arguments}
            assert isinstance(arguments.get("retry_policy"), StorageRetryPolicy), f"{dag.dag_id}.{task.task_id}"
            assert arguments["retries"] >= 2, f"{dag.dag_id}.{task.task_id}"


def test_every_dag_says_what_it_does_whose_it_is_and_who_hears_of_a_failure(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        assert dag.doc_md, dag.dag_id
        assert dag.tags == {"dynamic table"}, dag.dag_id
        for task in dag.tasks:
            arguments = getattr(task, "partial_kwargs", None) or vars(task)
            assert arguments["owner"] == OWNER, f"{dag.dag_id}.{task.task_id}"
            assert arguments["on_failure_callback"], f"{dag.dag_id}.{task.task_id}"


def test_every_task_that_changes_a_table_announces_it(dags: dict[str, DAG]) -> None:
    silent = {
        "list_tables",
        "list_compactions",
        "read_tables",
        "read_streams",
        "read_syncs",
        "check",
        "await_changes",
        "create_branch",
        "approve_drop",
        "expire_snapshots",
        "maintained",
        "provision_pool",
        "stream_sink",
        "list_materialized_tables",
        "set_status",
        "refresher",
    }
    for dag in dags.values():
        for task in dag.tasks:
            assert (TABLE_EVENTS in task.outlets) is (task.task_id not in silent), f"{dag.dag_id}.{task.task_id}"


def test_no_dag_ends(dags: dict[str, DAG]) -> None:
    """A run that is started after a DAG's end date has no tasks, and succeeds without doing anything."""
    assert [dag.dag_id for dag in dags.values() if dag.end_date] == []


def test_every_form_is_valid_with_its_defaults(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        dag.params.validate()
        assert dag.render_template_as_native_obj, dag.dag_id


def test_what_a_form_may_leave_out_is_not_marked_as_required(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        for name in dag.params:
            default = dag.params.get_param(name).value
            assert default not in ([], {}, ""), f"{dag.dag_id}.{name}: None is what may be left out"


def test_a_list_of_partitions_is_no_list_of_lines(dags: dict[str, DAG]) -> None:
    """For a list whose items have no type the form converts each line to text."""
    for dag_id, name in (("drop_old_partitions", "partitions"), ("validate", "expectations")):
        assert dags[dag_id].params.get_param(name).schema["items"] == {"type": "object"}


def test_every_parameter_of_a_form_is_used(dags: dict[str, DAG]) -> None:
    for path in DAG_FILES:
        text = path.read_text()
        [dag] = [dag for dag in dags.values() if Path(dag.fileloc) == path]
        for name in dag.params:
            assert f"params.{name}" in text, f"{path.name}: {name}"


def test_tables_are_compacted_one_run_at_a_time_and_expired_afterwards_whatever_came_of_it(
    dags: dict[str, DAG],
) -> None:
    maintain = dags["maintain"]
    expire: Any = maintain.get_task("expire_snapshots")

    assert maintain.max_active_runs == 1
    assert "compact_table" in expire.upstream_task_ids
    assert expire.trigger_rule == "all_done"


def test_a_run_whose_compaction_failed_is_red_although_the_expiry_after_it_went_well(dags: dict[str, DAG]) -> None:
    [last] = [task for task in dags["maintain"].tasks if not task.downstream_task_ids]

    assert last.upstream_task_ids == {"compact_table", "expire_snapshots"}
    assert last.trigger_rule == "none_failed"


def test_a_stream_is_waited_for_without_a_worker(dags: dict[str, DAG]) -> None:
    sink: Any = dags["stream"].get_task("stream_sink")

    assert sink.deferrable


def test_every_sink_of_a_file_is_kept_by_one_run_at_a_time_and_watched_without_a_worker(dags: dict[str, DAG]) -> None:
    supervisor = dags["stream_tables"]
    sinks: Any = supervisor.get_task("stream_sink")

    assert (supervisor.max_active_runs, supervisor.disable_bundle_versioning) == (1, True)
    assert sinks.partial_kwargs["deferrable"]


def test_databases_are_followed_by_one_run_at_a_time(dags: dict[str, DAG]) -> None:
    syncs: Any = dags["sync_databases"]

    assert (syncs.max_active_runs, syncs.get_task("sync").upstream_task_ids) == (1, {"read_syncs"})


@pytest.mark.parametrize("dag_id", ["sync", "sync_databases"])
def test_topics_that_stop_fail_a_task_after_the_one_that_announces(dags: dict[str, DAG], dag_id: str) -> None:
    sync: Any = dags[dag_id].get_task("sync")
    arguments = getattr(sync, "partial_kwargs", None) or vars(sync)

    assert (arguments["on_stopped"], sync.downstream_task_ids) == ("report", {"check"})


def test_a_run_of_the_schedule_is_for_the_day_before_it(dags: dict[str, DAG]) -> None:
    timetable: Any = dags["reprocess"].timetable

    if not AirflowFeature.PARTITIONED_RUNS.is_here:
        assert (type(timetable).__name__, timetable.summary) == ("CronDataIntervalTimetable", "0 0 * * *")
        return
    assert (timetable.run_offset, timetable.key_format) == (-1, "%Y-%m-%d")


@pytest.mark.parametrize(
    ("partition_key", "run_type", "day", "on_empty"),
    [
        ("2013-05-06", "backfill", "2013-05-06", "fail"),
        ("2013-05-06", "scheduled", "2013-05-06", "skip"),
        (None, "manual", "2013-01-01", "fail"),
    ],
)
def test_what_a_run_reprocesses_is_its_partition_or_the_day_of_the_form(
    dags: dict[str, DAG], partition_key: str | None, run_type: str, day: str, on_empty: str
) -> None:
    task: Any = copy.copy(dags["reprocess"].get_task("reprocess_partitions"))
    params = dags["reprocess"].params.dump()

    # Without partitioned runs, the date of a scheduled run is its day, that of a manual run its start.
    dag_run = SimpleNamespace(run_type=run_type, partition_key=partition_key)
    task.render_template_fields({"params": params, "dag_run": dag_run, "ds": partition_key or "2026-01-01"})

    assert task.partitions == [{"flight_date": day}]
    assert task.on_empty == on_empty
    assert task.change_tracking is False


@pytest.mark.parametrize("path", DAG_FILES, ids=lambda path: path.name)
def test_a_dag_file_is_wiring_only(path: Path) -> None:
    tree = ast.parse(path.read_text())

    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in getattr(node, "names", [])]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert imported <= {"__future__", "airflow", "datetime", "dynamic_table"}
    assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.If) for node in ast.walk(tree))


def test_parsing_the_dags_imports_nothing_heavy() -> None:
    heavy = ("storage_lib", "pyarrow", "numpy", "polars", "pyspark", "kafka", "great_expectations", "pandas")
    program = (
        "import sys, runpy\n"
        f"before = set(sys.modules)\n"
        f"[runpy.run_path(path) for path in {[str(path) for path in DAG_FILES]}]\n"
        f"print(sorted({{name.split('.')[0] for name in sys.modules}} & {set(heavy)}))\n"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert answer.stdout.splitlines()[-1] == "[]"


def test_no_plugin_file_shadows_an_installed_module() -> None:
    """If this folder is the plugins folder, Airflow loads every file of it under its bare stem."""
    plugins = CHECKOUT / "plugins"
    assert [path.name for path in plugins.glob("*.py")] == []
    assert "dynamic_table/" in (plugins / ".airflowignore").read_text().splitlines()

    stems = {path.stem for path in plugins.rglob("*.py")} - {"__init__"}
    assert [stem for stem in sorted(stems) if find_spec(stem) is not None] == []


def test_file_names_are_unique_over_the_three_code_folders() -> None:
    stems = [
        path.stem
        for folder in ("storage_lib", "plugins", "dags")
        for path in (CHECKOUT / folder).rglob("*.py")
        if path.name != "__init__.py"
    ]

    assert sorted(stem for stem in set(stems) if stems.count(stem) > 1) == []


@pytest.mark.parametrize("text", ["2024.10", "1_0.5_0", "None.x", "[1]"])
def test_what_a_form_says_in_text_reaches_every_task_as_text(dags: dict[str, DAG], text: str) -> None:
    mark = "text-of-a-form"

    def rendered(task: Any, params: dict[str, Any]) -> dict[str, Any]:
        task = copy.copy(task)
        when = datetime(2024, 1, 1, tzinfo=UTC)
        dag_run = SimpleNamespace(run_type="manual", run_after=when, conf={}, partition_key=None)
        ti = SimpleNamespace(task=task, xcom_pull=lambda *_, **__: None)
        var = SimpleNamespace(value={})
        task.render_template_fields({"params": params, "dag_run": dag_run, "ti": ti, "ds": "2024-01-01", "var": var})
        return {name: getattr(task, name) for name in task.template_fields}

    def with_text(value: Any) -> Any:
        if isinstance(value, dict):
            return {with_text(key): with_text(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(with_text(each) for each in value)
        return value.replace(mark, text) if isinstance(value, str) else value

    for dag in dags.values():
        for task in dag.tasks:
            if hasattr(task, "partial_kwargs"):
                continue  # its templates are rendered once it is expanded
            given = {name: dag.params.get_param(name).value for name in dag.params}
            for name, value in given.items():
                if value is not None and not isinstance(value, str):
                    continue
                marked, meant = rendered(task, {**given, name: mark}), rendered(task, {**given, name: text})
                assert meant == with_text(marked), f"{dag.dag_id}.{task.task_id}: {name}"
