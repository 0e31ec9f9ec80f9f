"""Runs a streaming sink into a table: a separate process that the task starts, monitors and stops."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import (  # type: ignore[attr-defined]  # their stub lacks the first
    NEVER_EXPIRE,
    ResumableJobMixin,
    conf,
)
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from dynamic_table.arguments.rendered_argument import (
    checked_count,
    checked_flag,
    checked_names,
    checked_number,
    is_nothing,
)
from dynamic_table.events.metrics import report_sink
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.commit_identity import task_instance_name
from dynamic_table.policies.failures_in_a_row import count_failure, forget_failures, start_again_later
from dynamic_table.policies.spark_settings import checked_master, checked_spark_conf
from dynamic_table.sinks.sink_facts import sink_facts
from dynamic_table.sinks.sink_job import (
    BY_HAND,
    SINK_JOB_KEY,
    SinkJob,
    SinkState,
    SinkWatch,
    newest_job,
    open_job_directory,
    turn_to_start,
)
from dynamic_table.sinks.sink_settings import (
    checked_open_options,
    checked_source,
    checkpoint_directory,
    is_permanent,
    jobs_root,
    secrets_apart,
)
from dynamic_table.triggers.stream_sink_trigger import RELEASED, REPORT_DUE, StreamSinkTrigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context
    from pydantic import JsonValue

    from storage_lib.spark.sink.sink_spec import SinkSpec

__all__ = ["SINK_FACTS_KEY", "SinkFailedError", "StreamSinkOperator"]

SINK_FACTS_KEY = "sink"  # key of the XCom

SINK_COMMAND = (sys.executable, "-m", "storage_lib.spark.streaming_sink")


class SinkFailedError(AirflowException):
    """The sink was cancelled, or failed without a state store to count its failures; the next try restarts it."""


class StreamSinkOperator(ResumableJobMixin, TableOperator):
    """Runs a streaming sink into a table until a user stops it.

    The sink outlives the worker, the scheduler and the triggerer: the next try finds it by the id in the task's state
    store. Marking the task as success or failed, or clearing it, ends the sink cleanly after its current batch. A
    table has one sink at a time.

    After a transient failure (an outage, a lost lease) the sink is restarted from its checkpoint after seconds to
    minutes. A restart does not use up a try, because a stream may run for years: the task fails once the sink has
    failed more than ``retries`` times in a row without finishing a batch.

    :param table: ``database.table`` to write into. (templated)
    :param source: the source: ``kind`` (``debezium_json`` or ``dynamic_table``), ``name`` (topic or table), and
        optionally ``schema`` and ``options``. (templated)
    :param select: Spark SQL expressions over the source's columns; None: all columns unchanged. (templated)
    :param trigger_seconds: seconds between micro-batches; 0: no pause between them. (templated)
    :param max_rows_per_trigger: maximum rows of a micro-batch. (templated)
    :param available_now: process the data available at the start, then end. (templated)
    :param write_options: options of the write. (templated)
    :param master: Spark's master, such as ``local[2]``; has to be allowed (``spark_settings``). None: the connection's
        master, or else Spark's configuration. (templated)
    :param spark_conf: Spark settings; each has to be allowed (``spark_settings``). (templated)
    :param jobs_directory: directory of jobs and checkpoints; default: the connection's extra ``jobs_directory``, or
        else ``dynamic_table_jobs`` in Airflow's home. (templated)
    :param deferrable: wait in the triggerer instead of on a worker.
    :param poll_seconds: seconds between checks of the sink.
    :param stale_seconds: age in seconds at which the heartbeat is stale and the sink counts as lost.
    :param report_seconds: seconds between reports of heartbeat, lag and last commit to the log and the XCom ``sink``;
        None: no reports. A deferred task occupies a worker for a moment for each report.
    :param stop_timeout_seconds: how long to wait for an earlier sink that is being stopped.
    :param command: the command to start, for a sink in another Python environment.
    """

    template_fields: Sequence[str] = (
        "table",
        "source",
        "select",
        "trigger_seconds",
        "max_rows_per_trigger",
        "available_now",
        "write_options",
        "master",
        "spark_conf",
        "jobs_directory",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "source": "json",
        "select": "json",
        "write_options": "json",
        "spark_conf": "json",
    }
    external_id_key = SINK_JOB_KEY
    ui_color = "#d9f0ec"

    def __init__(
        self,
        *,
        source: Mapping[str, Any] | str,
        select: Sequence[str] | str = (),
        trigger_seconds: float | str = 5,
        max_rows_per_trigger: int | str | None = None,
        available_now: bool | str = False,
        write_options: Mapping[str, str] | str | None = None,
        master: str | None = None,
        spark_conf: Mapping[str, str] | str | None = None,
        jobs_directory: str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_seconds: float = 2,
        stale_seconds: float = 120,
        report_seconds: float | None = 600,
        stop_timeout_seconds: float = 120,
        command: Sequence[str] = SINK_COMMAND,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source: Any = source
        self.select: Any = select
        self.trigger_seconds = trigger_seconds
        self.max_rows_per_trigger = max_rows_per_trigger
        self.available_now = available_now
        self.write_options: Any = write_options
        self.master = master
        self.spark_conf: Any = spark_conf
        self.jobs_directory = jobs_directory
        self.deferrable = deferrable
        self.poll_seconds = poll_seconds
        self.stale_seconds = stale_seconds
        self.report_seconds = report_seconds
        self.stop_timeout_seconds = stop_timeout_seconds
        self.command = command
        self._job: SinkJob | None = None
        self._killed = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Start the sink, or attach to the one that an earlier try started, and wait until it ends."""
        # The mixin returns a result only for a job that it submitted itself, not for one that it attached to.
        return self.execute_resumable(context) or self._conclude(context)

    def execute_complete(self, context: Context, event: Mapping[str, str]) -> dict[str, Any]:
        """Resume after the trigger has fired."""
        self._job = SinkJob(Path(event["directory"]))
        if event["state"] == REPORT_DUE:
            self._tell(context)
            self.poll_until_complete(event["directory"], context)
        if event["state"] == RELEASED:
            return self._conclude(context)
        self._check_stopped(SinkState(event["state"]), context)
        return self._conclude(context)

    def on_kill(self) -> None:
        """Stop the sink: a user ended the task while it held a worker. This process keeps running for some seconds."""
        self._killed = True
        if self._job:
            self._job.request_stop(BY_HAND)

    # -- ResumableJobMixin: the id of a job is its directory

    def submit_job(self, context: Context) -> str:
        """Start the sink; fails while another task's sink writes to the table.

        If an earlier try crashed before it stored the job's id, attach to its job.
        """
        self.hook.load_table(self.table)  # an invalid name fails here rather than in the detached process
        wanted = self._wanted()
        shown, secret, environment = secrets_apart(self.hook.options, self.hook.secret_keys)
        table_directory = jobs_root(self.hook, self.jobs_directory) / self.table
        with turn_to_start(table_directory):
            last, owner = newest_job(table_directory), self._sink_owner(context)
            if last and last.owner == owner and last.report().state.is_active:
                if self._spec(last, wanted, catalog_options=shown, secret_options=secret).to_json() == last.told():
                    self._job = last
                    return str(last.directory)
                last.request_stop("its declaration has changed")
            self._wait_for_predecessor(last)
            self._job = open_job_directory(table_directory, owner=owner)
            if self._killed:  # from now on, a kill leaves a stop request in the job's directory
                message = f"The task was ended before the sink of {self.table} was started"
                raise AirflowFailException(message)
            spec = self._spec(self._job, wanted, catalog_options=shown, secret_options=secret)
            self._job.launch(self.command, spec.to_json(), environment=environment)
        self.log.info("Started the sink in %s", self._job.directory)
        return str(self._job.directory)

    def get_job_status(self, external_id: JsonValue, context: Context) -> str:  # noqa: ARG002  the mixin's signature
        """Return the `SinkState` of the job."""
        return SinkJob(Path(str(external_id))).report().state

    def is_job_active(self, status: str) -> bool:
        """Return whether the job can be attached to again."""
        return SinkState(status).is_active

    def is_job_succeeded(self, status: str) -> bool:
        """Return whether the job has ended as requested."""
        return SinkState(status) is SinkState.STOPPED

    def poll_until_complete(self, external_id: JsonValue, context: Context) -> None:
        """Wait for the job's end, here or, if deferrable, in the triggerer (then this does not return)."""
        self._job = SinkJob(Path(str(external_id)))
        if (store := context.get("task_state_store")) is not None:
            # The mixin's own entry, which names the sink's owner, expires after thirty days.
            store.set(self.external_id_key, external_id, retention=NEVER_EXPIRE)
        if self.deferrable:
            # The mixin has stored the id by now, so that a deferred task finds its job again.
            self.defer(
                trigger=StreamSinkTrigger(
                    directory=str(self._job.directory),
                    poll_seconds=self.poll_seconds,
                    stale_seconds=self.stale_seconds,
                    report_seconds=self.report_seconds,
                    release_path=self._release_path(context),
                ),
                method_name="execute_complete",
            )
        watch, told = SinkWatch(self._job, stale_seconds=self.stale_seconds), time.monotonic()
        release = self._release_path(context)
        while not (report := watch.look()).state.is_ended:
            if release and Path(release).exists():
                return
            if self.report_seconds is not None and time.monotonic() - told >= self.report_seconds:
                self._tell(context)
                told = time.monotonic()
            time.sleep(self.poll_seconds)
        self._check_stopped(report.state, context)

    def get_job_result(self, external_id: JsonValue, context: Context) -> dict[str, Any]:
        """Return the result of a job that has succeeded."""
        self._job = SinkJob(Path(str(external_id)))
        return self._conclude(context)

    @property
    def job(self) -> SinkJob:
        """The job that this task monitors."""
        if self._job is None:
            message = f"Task {self.task_id} has no sink yet"
            raise RuntimeError(message)
        return self._job

    def _sink_owner(self, context: Context) -> str:
        """Return the owner of the sinks that this task starts and may attach to."""
        return task_instance_name(context)

    def _release_path(self, context: Context) -> str | None:  # noqa: ARG002  used by subclasses
        """Return the file whose existence hands the running sink over to another task."""
        return None

    def _tell(self, context: Context) -> None:
        """Report the sink's heartbeat, lag and last commit."""
        facts = sink_facts(self.job, lambda: self.hook.load_table(self.table))
        report_sink(self.table, facts)
        context["ti"].xcom_push(key=SINK_FACTS_KEY, value=facts)

    def _check_stopped(self, state: SinkState, context: Context) -> None:
        """Raise for a job that ended without a request; after a transient failure the exception restarts the sink."""
        if state is SinkState.STOPPED:
            return
        self.job.kill()  # a lost job that still has a process must not write in parallel with its successor
        heartbeat = self.job.report().heartbeat
        error = heartbeat.get("error")
        # The reason comes first, because the UI truncates the line.
        reason = error or self.job.log_tail()
        message = f"Sink {state}: {reason}\nThe sink of {self.table} in {self.job.directory}"
        if is_permanent(error):
            raise AirflowFailException(message)
        if context.get("task_state_store") is None or state is SinkState.CANCELLED:
            raise SinkFailedError(message)
        failures = count_failure(context, got_on=heartbeat.get("batch_id") is not None)
        if failures > (retries := self.retries or 0):
            message += f"\nIt failed {failures} times without finishing a batch; the task has {retries} retries"
            raise AirflowFailException(message)
        self.log.error("%s\nIt is started again (%d of %d times in a row)", message, failures, retries)
        raise start_again_later(context, failures)

    def _conclude(self, context: Context) -> dict[str, Any]:
        """Return the job's result and forget the job: otherwise clearing the finished task would do nothing."""
        if (store := context.get("task_state_store")) is not None:
            store.delete(self.external_id_key)
        forget_failures(context)
        heartbeat = self.job.report().heartbeat
        facts = {key: heartbeat[key] for key in ("batch_id", "row_count", "query_id") if key in heartbeat}
        facts |= {key: heartbeat[key] for key in ("compaction_error", "tiering_error") if heartbeat.get(key)}
        return {"table": self.table, "op": "stream", "job": str(self.job.directory), **facts}

    def _wanted(self) -> dict[str, Any]:
        """Return the part of the specification that the arguments give; raises InvalidInputError for invalid ones."""
        return {
            "warehouse": self.hook.warehouse,
            "table": self.table,
            "source": checked_source(self.source),
            "write_options": checked_open_options(self.write_options, "write_options"),
            "select": checked_names(self.select, "select"),
            "trigger_seconds": checked_number(self.trigger_seconds, "trigger_seconds"),
            "max_rows_per_trigger": None
            if is_nothing(self.max_rows_per_trigger)
            else checked_count(self.max_rows_per_trigger, "max_rows_per_trigger", least=1),
            "available_now": checked_flag(self.available_now, "available_now"),
            "master": checked_master(self.master, self.hook),
            "spark_conf": checked_spark_conf(self.spark_conf),
            "query_name": self.table,
        }

    @staticmethod
    def _spec(
        job: SinkJob, wanted: Mapping[str, Any], *, catalog_options: dict[str, str], secret_options: dict[str, str]
    ) -> SinkSpec:
        from storage_lib.spark.sink.sink_spec import SinkSpec

        return SinkSpec(
            **wanted,
            checkpoint_location=str(checkpoint_directory(job.directory.parent, wanted["source"])),
            heartbeat_path=str(job.heartbeat_path),
            stop_path=str(job.stop_path),
            catalog_options=catalog_options,
            secret_options=secret_options,
        )

    def _wait_for_predecessor(self, job: SinkJob | None) -> None:
        """Wait for a sink that is stopping; raises AirflowFailException if one is running."""
        deadline = time.monotonic() + self.stop_timeout_seconds
        while job and not (report := job.report()).state.is_ended:
            if report.state.is_active:
                message = (
                    f"{self.table} has a sink already ({job.directory}). End the task that monitors it, "
                    f"or, if there is none, create the file {job.stop_path}."
                )
                raise AirflowFailException(message)
            if time.monotonic() > deadline:
                self.log.warning("The sink in %s does not end; killing it", job.directory)
                job.kill()
            time.sleep(0.2)
