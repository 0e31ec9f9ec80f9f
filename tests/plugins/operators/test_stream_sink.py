"""A streaming sink from its task's view: started once, found again, stopped by hand, replaced when lost."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from airflow.sdk import DAG

from dynamic_table.hook import DynamicTableHook
from dynamic_table.operators.stream_sink import SINK_FACTS_KEY, SinkFailedError, StreamSinkOperator
from dynamic_table.sinks.sink_job import SinkJob, SinkState, newest_job
from dynamic_table.triggers.stream_sink_trigger import REPORT_DUE, StreamSinkTrigger
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.sdk_exceptions import AirflowException, AirflowFailException, AirflowRescheduleException
from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.spark.stream.sink.sink_check import check_of
from storage_lib.spark.stream.sink.sink_spec import SinkSpec
from tests.support import light_sink
from tests.support.airflow_names import TaskDeferred, needs
from tests.support.task_context import DictStore, task_context
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


LIGHT_SINK = (sys.executable, str(Path(light_sink.__file__)))
PATIENT = 120.0
"""Timeout in seconds of heartbeats and stops; long enough that a sink on a busy machine is not taken for lost."""

pytestmark = pytest.mark.usefixtures("table", "warehouse")


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Callable[..., StreamSinkOperator]]:
    """Return a factory of sink tasks for table ``db.t``; their jobs are killed at the end."""

    def make(*, deferrable: bool = True, retries: int = 2, **manners: str) -> StreamSinkOperator:
        return StreamSinkOperator(
            task_id="sink",
            table="db.t",
            source={"kind": "debezium_json", "name": "changes"},
            jobs_directory=str(tmp_path / "jobs"),
            command=LIGHT_SINK,
            write_options=manners,
            deferrable=deferrable,
            retries=retries,
            poll_seconds=0.05,
            stale_seconds=PATIENT,
            stop_timeout_seconds=PATIENT,
        )

    yield make
    for directory in (tmp_path / "jobs" / "db.t").glob("job-*"):
        SinkJob(directory).kill()


def start(task: StreamSinkOperator, store: DictStore) -> SinkJob:
    """Run the first half of a deferrable task."""
    with pytest.raises(TaskDeferred):
        task.execute(task_context(task, store=store))
    job = SinkJob(Path(store["sink_job"]))
    wait_until(lambda: job.report().state is not SinkState.STARTING)
    return job


def test_the_task_starts_one_job_defers_and_finds_it_again(sink: Callable[..., StreamSinkOperator]) -> None:
    store = DictStore()
    first = start(sink(), store)

    again = start(sink(), store)

    assert again == first
    assert "sink_job" in store.lasting
    assert first.task == {"dag_id": "dag", "run_id": "run", "task_id": "sink", "map_index": -1}
    assert newest_job(first.directory.parent) == first
    assert first.report().state is SinkState.RUNNING


def test_a_directory_that_is_no_jobs_is_neither_read_nor_stopped(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path
) -> None:
    """Users may write into the state of a task."""
    outside = SinkJob(tmp_path / "job-0001")
    outside.directory.mkdir()
    outside.heartbeat_path.write_text('{"state": "STOPPED"}')
    store = DictStore(sink_job=str(outside.directory))
    task = sink()
    context = task_context(task, store=store)

    assert task.get_job_status(store["sink_job"], context) == SinkState.LOST
    for attach in (task.poll_until_complete, task.get_job_result):
        with pytest.raises(AirflowFailException, match="not a directory of a job"):
            attach(store["sink_job"], context)
    task._forget_other_job(context)

    assert "sink_job" not in store
    assert [path.name for path in outside.directory.iterdir()] == ["heartbeat.json"]


def test_the_spec_holds_what_the_task_says_and_no_secret(
    sink: Callable[..., StreamSinkOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"warehouse": "/tables", "options": {"bucket": "3"}}
    connection = {"conn_type": "dynamic_table", "login": "ann", "password": "sesame", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps(connection))

    job = start(sink(), DictStore())

    spec = json.loads(job.spec_path.read_text())
    assert (spec["warehouse"], spec["table"]) == ("/tables", "db.t")
    assert spec["source"] == {"kind": "debezium_json", "name": "changes", "options": {}, "schema": None}
    checkpoint = Path(spec["checkpoint_location"])
    assert checkpoint.parents[2] == job.directory.parent
    assert checkpoint.parent.name.startswith("debezium_json-changes-")
    assert spec["secret_options"] == {"log.kafka.sasl.plain.password": "DYNAMIC_TABLE_SECRET_0"}
    assert "sesame" not in job.spec_path.read_text()
    pid = json.loads((job.directory / "process.json").read_text())["pid"]
    # During its exec a process briefly has no environment.
    wait_until(lambda: b"DYNAMIC_TABLE_SECRET_0=sesame" in Path(f"/proc/{pid}/environ").read_bytes())


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("source", {"kind": "debezium_json", "name": "c", "options": {"log.kafka.sasl.plain.password": "x"}}),
        ("write_options", {"s3.secret-access-key": "x"}),
        ("spark_conf", {"spark.hadoop.fs.s3a.secret.key": "x"}),
    ],
)
def test_a_secret_of_a_form_is_refused_before_it_lies_in_a_file(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path, argument: str, value: dict[str, Any]
) -> None:
    task = sink()
    setattr(task, argument, value)

    with pytest.raises(InvalidInputError, match=f"{argument}.* is a secret or contains one, and would be stored"):
        task.execute(task_context(task))
    assert not list((tmp_path / "jobs").rglob("spec.json"))


def test_the_spec_holds_every_limit_of_the_form(sink: Callable[..., StreamSinkOperator]) -> None:
    task = sink()
    task.max_rows_per_trigger, task.available_now, task.select = "500", "True", ["id"]
    task.master = "None"  # value of an empty form field

    spec = json.loads(start(task, DictStore()).spec_path.read_text())

    assert (spec["max_rows_per_trigger"], spec["available_now"], spec["select"]) == (500, True, ["id"])
    assert spec["master"] is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names
def test_the_spec_holds_expectations_as_plain_data_and_the_function_that_checks_rows_by_them(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path
) -> None:
    known = {"type": "expect_column_values_to_be_null", "kwargs": {"column": "v"}, "severity": "reject"}
    (tmp_path / "rows.json").write_text(json.dumps([known]))
    task = sink()
    task.expectations = "rows.json"
    task.dag = DAG("checked", schedule=None)
    task.dag.fileloc = str(tmp_path / "dag.py")

    job = start(task, DictStore())
    job.kill()

    check = check_of(SinkSpec.from_json(job.spec_path.read_text()).check)
    assert check is not None
    assert [*check(pa.table({"v": ["a", None]}))] == [0]
    for source in ({"kind": "dynamic_table", "name": "db.s"}, {**task.source, "schema": "id BIGINT"}):
        task.source = source
        with pytest.raises(InvalidInputError, match="expectations refuse records of a topic that is applied"):
            task.arguments()


def test_each_source_has_a_checkpoint_of_its_own_to_come_back_to(sink: Callable[..., StreamSinkOperator]) -> None:
    def checkpoint(source: dict[str, Any]) -> str:
        task = sink()
        task.source = source
        job = start(task, DictStore())
        job.kill()
        return str(json.loads(job.spec_path.read_text())["checkpoint_location"])

    changes: dict[str, Any] = {"kind": "debezium_json", "name": "changes"}
    others: list[dict[str, Any]] = [
        {"kind": "dynamic_table", "name": "changes"},
        {"kind": "debezium_json", "name": "Changes"},
        {"kind": "debezium_json", "name": "a/b"},
        {"kind": "debezium_json", "name": "a_b"},
        {"kind": "debezium_json", "name": "changes", "options": {"source": "of another broker"}},
    ]

    first = checkpoint(changes)
    assert len({first, *(checkpoint(other) for other in others)}) == 1 + len(others)
    assert checkpoint({**changes, "schema": "id BIGINT"}) == first


def test_a_sink_without_a_master_of_its_own_runs_where_the_connection_says(
    sink: Callable[..., StreamSinkOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"warehouse": "/tables", "spark_master": "spark://host:7077"}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    of_connection = start(sink(), DictStore())
    of_connection.kill()
    named = sink()
    named.master = "local[1]"

    assert json.loads(of_connection.spec_path.read_text())["master"] == "spark://host:7077"
    assert json.loads(start(named, DictStore()).spec_path.read_text())["master"] == "local[1]"


def test_jobs_live_where_the_connection_says(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"warehouse": "/tables", "jobs_directory": str(tmp_path / "elsewhere")}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))
    task = sink()
    task.jobs_directory = None

    job = start(task, DictStore())

    job.kill()
    assert job.directory.parent == tmp_path / "elsewhere" / "db.t"


def test_a_stopped_job_ends_the_task_and_is_forgotten(sink: Callable[..., StreamSinkOperator]) -> None:
    task, store = sink(), DictStore()
    job = start(task, store)
    job.request_stop("enough")
    wait_until(lambda: job.report().state is SinkState.STOPPED)

    event = asyncio.run(fired(trigger_of(job)))
    result = task.execute_complete(task_context(task, store=store), event)

    assert event == {"directory": str(job.directory), "state": "stopped"}
    assert (result["table"], result["op"]) == ("db.t", "stream")
    assert store == {}


def test_a_job_that_ends_while_watched_from_a_worker_ends_the_task(sink: Callable[..., StreamSinkOperator]) -> None:
    store = DictStore()
    job = start(sink(), store)
    job.request_stop("enough")

    task = sink(deferrable=False)
    wait_until(lambda: job.report().state is SinkState.STOPPED)
    result = task.execute(task_context(task, store=store))

    assert result["job"] == str(job.directory)
    assert store == {}


def test_a_job_that_is_found_again_tells_its_result_when_it_ends(
    sink: Callable[..., StreamSinkOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DictStore()
    job = start(sink(compaction_error="CommitConflictError: lost"), store)
    task = sink(deferrable=False, compaction_error="CommitConflictError: lost")

    def meanwhile(_seconds: float) -> None:
        if not job.stop_path.exists():
            job.request_stop("enough")

    clock = SimpleNamespace(sleep=meanwhile, monotonic=time.monotonic)
    monkeypatch.setattr("dynamic_table.operators.detached_job.time", clock)
    result = task.execute(task_context(task, store=store))

    assert (result["job"], result["compaction_error"]) == (str(job.directory), "CommitConflictError: lost")


def test_a_sink_that_never_spoke_tells_the_end_of_its_log(sink: Callable[..., StreamSinkOperator]) -> None:
    task = sink(deferrable=False, retries=0)
    task.command = (sys.executable, "-c", "raise SystemExit('no such library')")

    with pytest.raises(AirflowFailException, match="Sink lost: no such library"):
        task.execute(task_context(task))


def test_a_failed_job_is_followed_by_another_in_a_while_within_the_same_try(
    sink: Callable[..., StreamSinkOperator], capsys: pytest.CaptureFixture[str]
) -> None:
    store = DictStore()
    failing = sink(deferrable=False, end="FAILED", error="UnavailableError: no broker")
    before = datetime.now(tz=UTC)
    with pytest.raises(AirflowRescheduleException) as raised:
        failing.execute(task_context(failing, store=store))
    after = datetime.now(tz=UTC)

    job = start(sink(), store)

    assert (raised.value.reschedule_date - before).total_seconds() >= 10
    assert (raised.value.reschedule_date - after).total_seconds() < 30
    assert "no broker" in capsys.readouterr().out
    assert job.directory.name == "job-0002"
    assert job.report().state is SinkState.RUNNING


def fail(task: StreamSinkOperator, store: DictStore, *, max_tries: int = 5) -> type[Exception]:
    """Run a sink that fails on a worker and return the type of its task's exception."""
    with pytest.raises(AirflowException) as raised:
        task.execute(task_context(task, store=store, max_tries=max_tries))
    return raised.type


def test_a_sink_that_never_gets_on_fails_after_as_many_failures_as_the_task_has_retries(
    sink: Callable[..., StreamSinkOperator],
) -> None:
    store, again = DictStore(), AirflowRescheduleException
    broken = sink(deferrable=False, end="FAILED", error="UnavailableError: no broker")

    assert [fail(broken, store) for _ in range(3)] == [again, again, AirflowFailException]
    assert fail(broken, store, max_tries=6) is again, "clearing the task resets the count"


def test_failures_do_not_add_up_over_batches_between_them(sink: Callable[..., StreamSinkOperator]) -> None:
    store, again = DictStore(), AirflowRescheduleException
    broken = sink(deferrable=False, end="FAILED", error="UnavailableError: no broker")
    faltering = sink(deferrable=False, end="FAILED", after="2", error="UnavailableError: no broker")

    assert [fail(task, store) for task in (broken, broken, faltering, broken)] == [again] * 4
    assert fail(broken, store) is AirflowFailException


def test_a_sink_that_ended_well_leaves_no_count_of_failures(sink: Callable[..., StreamSinkOperator]) -> None:
    store = DictStore()
    fail(sink(deferrable=False, end="FAILED", error="UnavailableError: no broker"), store)
    task = sink(deferrable=False, end="STOPPED")

    task.execute(task_context(task, store=store))

    assert store == {}


def test_a_task_without_retries_leaves_it_to_airflow(sink: Callable[..., StreamSinkOperator]) -> None:
    once = sink(deferrable=False, retries=0, end="FAILED", error="UnavailableError: no broker")

    assert fail(once, DictStore()) is AirflowFailException


@needs(AirflowFeature.TASK_STATE)
def test_a_task_without_a_state_store_leaves_it_to_airflow(sink: Callable[..., StreamSinkOperator]) -> None:
    forgetful = sink(deferrable=False, end="FAILED", error="UnavailableError: no broker")
    context = task_context(forgetful)
    del context["task_state_store"]

    with pytest.raises(SinkFailedError, match="no broker"):
        forgetful.execute(context)


def test_a_job_that_failed_for_good_is_not_tried_again(sink: Callable[..., StreamSinkOperator]) -> None:
    failing = sink(deferrable=False, end="FAILED", error="InvalidInputError: no such column")

    with pytest.raises(AirflowFailException, match="no such column"):
        failing.execute(task_context(failing))


def test_a_job_without_heartbeat_is_lost_and_ended(
    sink: Callable[..., StreamSinkOperator], capsys: pytest.CaptureFixture[str]
) -> None:
    task, store = sink(silent="yes"), DictStore()
    job = start(task, store)

    event = asyncio.run(fired(trigger_of(job, stale_seconds=0.5)))
    with pytest.raises(AirflowRescheduleException):
        task.execute_complete(task_context(task, store=store), event)

    assert "Sink lost" in capsys.readouterr().out
    wait_until(lambda: job.report().state is SinkState.LOST)


def test_a_second_sink_of_one_table_is_refused(sink: Callable[..., StreamSinkOperator]) -> None:
    job = start(sink(), DictStore())
    other = sink()

    with pytest.raises(AirflowFailException, match="has a sink already"):
        other.execute(task_context(other, run_id="other", store=DictStore()))
    assert newest_job(job.directory.parent) == job


def test_of_two_tasks_that_start_at_once_one_is_refused(
    sink: Callable[..., StreamSinkOperator], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both tasks check for an existing sink before either has started its own."""
    met, refused = threading.Barrier(2), []

    def meeting(job: SinkJob | None) -> None:
        with suppress(threading.BrokenBarrierError):
            met.wait(timeout=0.5)
        if job is not None:
            refused.append(job)
            raise AirflowFailException("has a sink already")

    def run(run_id: str) -> None:
        task = sink()
        monkeypatch.setattr(task, "_wait_for_predecessor", meeting)
        with suppress(AirflowFailException, TaskDeferred):
            task.execute(task_context(task, run_id=run_id, store=DictStore()))

    tasks = [threading.Thread(target=run, args=(name,)) for name in ("first", "second")]
    for each in tasks:
        each.start()
    for each in tasks:
        each.join()

    assert [path.name for path in (tmp_path / "jobs" / "db.t").glob("job-*")] == ["job-0001"]
    assert len(refused) == 1


def test_a_try_that_died_before_it_noted_its_sink_leaves_it_to_the_next(
    sink: Callable[..., StreamSinkOperator],
) -> None:
    first = start(sink(), DictStore())

    again = start(sink(), DictStore())

    assert again == first


def test_a_task_that_is_ended_before_its_sink_is_there_starts_none(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path
) -> None:
    """Airflow ends the task by a signal, but the interrupted work continues for seconds."""
    task = sink()
    task.on_kill()

    with pytest.raises(AirflowFailException, match="ended before the sink"):
        task.execute(task_context(task))
    assert not list((tmp_path / "jobs" / "db.t").glob("job-*/process.json"))


@pytest.mark.parametrize("refusal", [UnavailableError("no storage"), AirflowException("no connection")])
def test_a_report_that_can_not_look_at_the_table_leaves_the_sink_and_its_task_as_they_are(
    sink: Callable[..., StreamSinkOperator], monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    """Reports recur every ten minutes for years; if a failed report used up a try, the task would run out of them."""
    store = DictStore()
    job, task = start(sink(), store), sink()
    context = task_context(task, store=store)

    def refuse(_hook: DynamicTableHook, _name: str) -> None:
        raise refusal

    monkeypatch.setattr(DynamicTableHook, "load_table", refuse)
    with pytest.raises(TaskDeferred):
        task.execute_complete(context, {"directory": str(job.directory), "state": REPORT_DUE})

    told = context["ti"].pushed[SINK_FACTS_KEY]  # type: ignore[attr-defined]  # a double
    assert (told["state"], told["unknown"]) == ("running", f"{type(refusal).__name__}: {refusal}")


def test_a_table_that_is_not_there_fails_the_task_and_not_a_process_that_nobody_reads(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_hook: DynamicTableHook, name: str) -> None:
        raise NotFoundError(f"no table {name}")

    monkeypatch.setattr(DynamicTableHook, "load_table", missing)
    task = sink()

    with pytest.raises(NotFoundError, match=r"no table db\.t"):
        task.execute(task_context(task))
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": {}},
        {"source": "{'kind': 'debezium_json'}"},
        {"source": {"kind": "debezium_json"}},
        {"source": {"kind": "debezium_json", "name": ""}},
        {"source": {"kind": "debezium_json", "name": "None"}},
        {"source": {"kind": "csv", "name": "changes"}},
        {"source": {"kind": "debezium_json", "name": "changes", "topics": "changes"}},
        {"select": "id, text"},
        {"trigger_seconds": "soon"},
        {"trigger_seconds": -1},
        {"max_rows_per_trigger": 0},
        {"available_now": "perhaps"},
        {"write_options": "change-tracking=false"},
        {"spark_conf": ["spark.ui.enabled"]},
    ],
)
def test_a_wrong_argument_starts_no_sink(
    sink: Callable[..., StreamSinkOperator], tmp_path: Path, arguments: dict[str, Any]
) -> None:
    task = sink()
    for name, value in arguments.items():
        setattr(task, name, value)

    with pytest.raises(InvalidInputError):
        task.execute(task_context(task))
    assert not list((tmp_path / "jobs").glob("*/job-*/process.json"))


def test_a_query_that_spark_does_not_understand_is_not_tried_again(sink: Callable[..., StreamSinkOperator]) -> None:
    error = "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] no such column"
    failing = sink(deferrable=False, end="FAILED", error=error)

    with pytest.raises(AirflowFailException, match="UNRESOLVED_COLUMN"):
        failing.execute(task_context(failing))


def test_a_task_cleared_while_it_runs_waits_for_the_old_job_and_starts_another(
    sink: Callable[..., StreamSinkOperator],
) -> None:
    store = DictStore()
    old = start(sink(), store)
    asyncio.run(trigger_of(old).on_kill())

    new = start(sink(), store)

    assert new != old
    assert old.report().state is SinkState.CANCELLED


def test_a_job_that_will_not_stop_is_killed_by_its_successor(sink: Callable[..., StreamSinkOperator]) -> None:
    store = DictStore()
    old = start(sink(deaf="yes"), store)
    old.request_stop("enough")
    successor = sink()
    successor.stop_timeout_seconds = 0.2

    new = start(successor, store)

    assert new != old
    assert old.report().state is SinkState.LOST


def test_ending_the_task_on_a_worker_stops_the_job(sink: Callable[..., StreamSinkOperator]) -> None:
    task = sink()
    job = start(task, DictStore())

    task.on_kill()

    wait_until(lambda: job.report().state is SinkState.CANCELLED)


def test_the_trigger_is_rebuilt_from_what_it_serialises(tmp_path: Path) -> None:
    from importlib import import_module

    path, arguments = trigger_of(SinkJob(tmp_path)).serialize()

    module, _, name = path.rpartition(".")
    rebuilt = getattr(import_module(module), name)(**json.loads(json.dumps(arguments)))

    assert rebuilt.serialize() == (path, arguments)


def test_a_restarted_triggerer_does_not_stop_the_job(sink: Callable[..., StreamSinkOperator]) -> None:
    job = start(sink(), DictStore())

    asyncio.run(trigger_of(job).cleanup())

    assert job.report().state is SinkState.RUNNING


def trigger_of(job: SinkJob, *, stale_seconds: float = PATIENT) -> StreamSinkTrigger:
    return StreamSinkTrigger(directory=str(job.directory), poll_seconds=0.05, stale_seconds=stale_seconds)


async def fired(trigger: StreamSinkTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    return None
