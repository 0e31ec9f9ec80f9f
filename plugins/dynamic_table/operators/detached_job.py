"""Base of the operators that start a separate process, monitor it, and stop it when a user ends the task."""

from __future__ import annotations

import time
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.operators.table_operator import CatalogOperator
from dynamic_table.policies.commit_identity import task_instance_name
from dynamic_table.policies.failures_in_a_row import count_failure, forget_failures, start_again_later
from dynamic_table.sinks.sink_job import (
    BY_HAND,
    SINK_JOB_KEY,
    SUPERSEDED,
    SinkJob,
    SinkState,
    SinkWatch,
    newest_job,
    open_job_directory,
    turn_to_start,
)
from dynamic_table.sinks.sink_settings import is_permanent, jobs_root
from dynamic_table.sinks.stored_job import job_below
from dynamic_table.triggers.stream_sink_trigger import RELEASED, REPORT_DUE, StreamSinkTrigger
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.kept_state import NEVER_EXPIRE, task_state_store
from dynamic_table.versions.resumable_job import ResumableJobMixin
from dynamic_table.versions.sdk_conf import conf
from dynamic_table.versions.sdk_exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context
    from pydantic import JsonValue

__all__ = ["DetachedJobOperator", "SinkFailedError"]

LAST_TRY_KEY = "sink_last_try"  # key in the task's state store


class SinkFailedError(AirflowException):
    """The process was cancelled, or failed without a state store to count its failures; the next try restarts it."""


class DetachedJobOperator(ResumableJobMixin, CatalogOperator):
    """Runs a process that outlives the worker, the scheduler and the triggerer, until a user stops it.

    The next try finds the process by the id in the task's state store. Marking the task as success or failed, or
    clearing it, ends the process cleanly. One process runs at a time in a directory of jobs.

    After a transient failure (an outage, a lost lease) the process is restarted after seconds to minutes. A restart
    does not use up a try, because a process may run for years: the task fails once the process has failed more than
    ``retries`` times in a row without progress.

    :param jobs_directory: directory of jobs and checkpoints; default: the connection's extra ``jobs_directory``, or
        else ``dynamic_table_jobs`` in Airflow's home. (templated)
    :param deferrable: wait in the triggerer instead of on a worker.
    :param poll_seconds: seconds between checks of the process.
    :param stale_seconds: age in seconds at which the heartbeat is stale and the process counts as lost.
    :param report_seconds: seconds between reports to the log and an XCom; None: no reports. A deferred task occupies a
        worker for a moment for each report.
    :param stop_timeout_seconds: how long to wait for an earlier process that is being stopped.
    :param command: the command to start, for a process in another Python environment.
    """

    external_id_key = SINK_JOB_KEY
    kind: ClassVar[str]
    """The process in messages: ``sink``."""
    progress: ClassVar[tuple[str, str]]
    """Field of the heartbeat that is set once the process has made progress, and how messages call that."""

    def __init__(
        self,
        *,
        command: Sequence[str],
        jobs_directory: str | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_seconds: float = 2,
        stale_seconds: float = 120,
        report_seconds: float | None = 600,
        stop_timeout_seconds: float = 120,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.jobs_directory = jobs_directory
        self.deferrable = deferrable
        self.poll_seconds = poll_seconds
        self.stale_seconds = stale_seconds
        self.report_seconds = report_seconds
        self.stop_timeout_seconds = stop_timeout_seconds
        self._job: SinkJob | None = None
        self._killed = False

    @property
    @abstractmethod
    def subject(self) -> str:
        """What the process works on, in messages."""

    @abstractmethod
    def job_home(self) -> Path:
        """Return the directory of the jobs of which one runs at a time."""

    @abstractmethod
    def arguments(self) -> Any:
        """Return the checked arguments of the process; reads no table, so that it works during an outage."""

    @abstractmethod
    def prepare(self) -> None:
        """Check the tables before a process is started or replaced."""

    @abstractmethod
    def specification(self, job: SinkJob, wanted: Any) -> tuple[str, Mapping[str, str]]:
        """Return the JSON of a job's specification, and the variables of its environment."""

    @abstractmethod
    def tell(self, context: Context) -> None:
        """Report the state of the process."""

    @abstractmethod
    def result(self, heartbeat: Mapping[str, Any]) -> dict[str, Any]:
        """Return the task's result from the last heartbeat of a process that has ended as requested."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Start the sink, or attach to the one that an earlier try started, and wait until it ends."""
        self._stop_job_before_clear(context)
        self._forget_other_job(context)
        # The mixin returns a result only for a job that it submitted itself, not for one that it attached to.
        return self.execute_resumable(context) or self._conclude(context)

    def execute_complete(self, context: Context, event: Mapping[str, str]) -> dict[str, Any]:
        """Resume after the trigger has fired."""
        self._job = SinkJob(Path(event["directory"]))
        # While the task waited, its arguments may have changed: those of a mapped task are another task's result.
        if not self._is_still_wanted(also_if_ended=event["state"] != REPORT_DUE):
            return self.execute(context)
        if event["state"] == REPORT_DUE:
            self.tell(context)
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
        """Start the process; fails while another task's process runs in its directory.

        If an earlier try crashed before it stored the job's id, attach to its job.
        """
        wanted, home = self.arguments(), self.job_home()
        self.prepare()
        with turn_to_start(home):
            last, owner = newest_job(home), self._sink_owner(context)
            if last and last.owner == owner and last.report().state.is_active:
                if self.specification(last, wanted)[0] == last.spec_text():
                    self._job = last
                    return str(last.directory)
                last.request_stop(f"{SUPERSEDED}its declaration has changed")
            self._wait_for_predecessor(last)
            self._job = open_job_directory(home, owner=owner)
            if self._killed:  # from now on, a kill leaves a stop request in the job's directory
                message = f"The task was ended before the {self.kind} of {self.subject} was started"
                raise AirflowFailException(message)
            spec, environment = self.specification(self._job, wanted)
            self._job.launch(self.command, spec, environment=environment)
        self.log.info("Started the %s in %s", self.kind, self._job.directory)
        return str(self._job.directory)

    def get_job_status(self, external_id: JsonValue, context: Context) -> str:  # noqa: ARG002  the mixin's signature
        """Return the `SinkState` of the job."""
        job = self._stored_job(external_id)
        return SinkState.LOST if job is None else job.report().state

    def is_job_active(self, status: str) -> bool:
        """Return whether the job can be attached to again."""
        return SinkState(status).is_active

    def is_job_succeeded(self, status: str) -> bool:
        """Return whether the job has ended as requested."""
        return SinkState(status) is SinkState.STOPPED

    def poll_until_complete(self, external_id: JsonValue, context: Context) -> None:
        """Wait for the job's end, here or, if deferrable, in the triggerer (then this does not return)."""
        self._job = self._checked_job(external_id)
        ti = context["ti"]
        self._job.note_task(
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            task_id=ti.task_id,
            map_index=ti.map_index if ti.map_index is not None else -1,
        )
        if (store := task_state_store(context)) is not None:
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
        watch, reported_at = SinkWatch(self._job, stale_seconds=self.stale_seconds), time.monotonic()
        release = self._release_path(context)
        while not (report := watch.look()).state.is_ended:
            if release and Path(release).exists():
                return
            if self.report_seconds is not None and time.monotonic() - reported_at >= self.report_seconds:
                self.tell(context)
                reported_at = time.monotonic()
            time.sleep(self.poll_seconds)
        self._check_stopped(report.state, context)

    def get_job_result(self, external_id: JsonValue, context: Context) -> dict[str, Any]:
        """Return the result of a job that has succeeded."""
        self._job = self._checked_job(external_id)
        return self._conclude(context)

    @property
    def job(self) -> SinkJob:
        """The job that this task monitors."""
        if self._job is None:
            message = f"Task {self.task_id} has no {self.kind} yet"
            raise RuntimeError(message)
        return self._job

    def _stop_job_before_clear(self, context: Context) -> None:
        """Stop the job of a task that was cleared, where Airflow does not tell the trigger that it was."""
        if AirflowFeature.KILLED_TRIGGERS.is_here:
            return
        store, last_try = task_state_store(context), context["ti"].max_tries  # which clearing raises
        before, directory = store.get(LAST_TRY_KEY), store.get(self.external_id_key)
        if before not in (None, last_try) and directory:
            self.log.info("The task was cleared; stopping the %s in %s", self.kind, directory)
            if (job := self._stored_job(directory)) is not None:
                job.request_stop(BY_HAND)
            store.delete(self.external_id_key)
        store.set(LAST_TRY_KEY, last_try, retention=NEVER_EXPIRE)

    def _forget_other_job(self, context: Context) -> None:
        """Forget a stored job that differs from what the task is for, so that the task starts or finds its own.

        The task of a map index, or of an edited DAG, may have monitored another table's job at its last try.
        """
        store = task_state_store(context)
        stored = None if store is None else store.get(self.external_id_key)
        if not stored:
            return
        job = self._stored_job(stored)
        if job is None:
            self.log.warning("The state store names %r, which is not a directory of a job", stored)
            store.delete(self.external_id_key)
            return
        if self._is_wanted(job) and not job.is_superseded:
            return
        self.log.info("The %s in %s is not the one that this task is for", self.kind, job.directory)
        if job.owner == self._sink_owner(context) and job.report().state.is_active:
            job.request_stop(f"{SUPERSEDED}its task is for another one now")
        store.delete(self.external_id_key)

    def _is_wanted(self, job: SinkJob) -> bool:
        return self.specification(job, self.arguments())[0] == job.spec_text()

    def _is_still_wanted(self, *, also_if_ended: bool) -> bool:
        """Return whether to go on with the job that the task waited for; its end counts if its table is right."""
        from storage_lib.errors import StorageError

        try:
            in_place = self.job.directory.parent == self.job_home()
            return in_place and (also_if_ended or self._is_wanted(self.job))
        except (StorageError, AirflowException) as unknown:
            # An outage of the connection's store must not end a report, of which a stream makes thousands.
            self.log.warning("Whether %s is still wanted is unknown: %s", self.job.directory, unknown)
            return True

    def _stored_job(self, stored: object) -> SinkJob | None:
        """Return the job in a directory that the state store names; None if no job of this project can be there."""
        return job_below(jobs_root(self.hook, self.jobs_directory), stored)

    def _checked_job(self, stored: object) -> SinkJob:
        if (job := self._stored_job(stored)) is None:
            message = f"The state store names {stored!r}, which is not a directory of a job; clear the task"
            raise AirflowFailException(message)
        return job

    def _sink_owner(self, context: Context) -> str:
        """Return the owner of the sinks that this task starts and may attach to."""
        return task_instance_name(context)

    def _release_path(self, context: Context) -> str | None:  # noqa: ARG002  used by subclasses
        """Return the file whose existence hands the running sink over to another task."""
        return None

    def _check_stopped(self, state: SinkState, context: Context) -> None:
        """Raise for a job that ended without a request; after a transient failure the exception restarts the sink."""
        if state is SinkState.STOPPED:
            return
        self.job.kill()  # a lost job that still has a process must not write in parallel with its successor
        heartbeat = self.job.report().heartbeat
        error = heartbeat.get("error")
        # The reason comes first, because the UI truncates the line.
        reason = error or self.job.log_tail()
        message = (
            f"{self.kind.capitalize()} {state}: {reason}\nThe {self.kind} of {self.subject} in {self.job.directory}"
        )
        if is_permanent(error):
            raise AirflowFailException(message)
        if task_state_store(context) is None or state is SinkState.CANCELLED:
            raise SinkFailedError(message)
        field, achieved = self.progress
        failures = count_failure(context, got_on=heartbeat.get(field) is not None)
        if failures > (retries := self.retries or 0):
            message += f"\nIt failed {failures} times without {achieved}; the task has {retries} retries"
            raise AirflowFailException(message)
        self.log.error("%s\nIt is started again (%d of %d times in a row)", message, failures, retries)
        raise start_again_later(context, failures)

    def _conclude(self, context: Context) -> dict[str, Any]:
        """Return the job's result and forget the job: otherwise clearing the finished task would do nothing."""
        if (store := task_state_store(context)) is not None:
            store.delete(self.external_id_key)
            store.delete(LAST_TRY_KEY)
        forget_failures(context)
        return self.result(self.job.report().heartbeat)

    def _wait_for_predecessor(self, job: SinkJob | None) -> None:
        """Wait for a sink that is stopping; raises AirflowFailException if one is running."""
        deadline = time.monotonic() + self.stop_timeout_seconds
        if job and not job.is_here:
            self._wait_for_sign(job)
        while job and not (report := job.report()).state.is_ended:
            if report.state.is_active:
                message = (
                    f"{self.subject} has a {self.kind} already ({job.directory}). End the task that monitors it, "
                    f"or, if there is none, create the file {job.stop_path}."
                )
                raise AirflowFailException(message)
            if time.monotonic() > deadline:
                self.log.warning("The %s in %s does not end; killing it", self.kind, job.directory)
                job.kill()
            time.sleep(0.2)

    def _wait_for_sign(self, job: SinkJob) -> None:
        """Wait until a job on another host has ended or shown that it runs; give it up if its heartbeat is stale."""
        watch = SinkWatch(job, stale_seconds=self.stale_seconds)
        while not watch.look().state.is_ended:
            if watch.has_changed:
                return
            time.sleep(self.poll_seconds)
        job.kill()
