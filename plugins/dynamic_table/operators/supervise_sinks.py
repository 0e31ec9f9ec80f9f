"""Operators that run one sink for every stream in a file: one reads it, one runs a sink, one watches for changes.

A run's tasks monitor the sinks until the file changes. Then the run hands them over: its tasks end, the sinks keep
running, and the next run attaches to the unchanged ones, starts new ones and stops those that were removed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_text
from dynamic_table.declarations.stream_declarations import read_streams
from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.operators.table_operator import CatalogOperator
from dynamic_table.sinks.sink_job import SUPERSEDED, newest_job
from dynamic_table.sinks.sink_settings import jobs_root
from dynamic_table.triggers.file_change_trigger import FileChangeTrigger, file_stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from dynamic_table.hook import DynamicTableHook

__all__ = ["AwaitStreamChangesOperator", "ReadStreamsOperator", "SuperviseSinkOperator"]

RELEASES = ".released"  # in the jobs' directory: one file per run that has handed over its sinks


class ReadStreamsOperator(CatalogOperator):
    """Returns ``SuperviseSinkOperator``'s arguments for every declared stream, and stops sinks of removed streams.

    It stops only sinks that earlier runs of this DAG started.

    :param source: path of a YAML file, absolute or relative to the DAG file's folder, or ``package.module:function``.
        (templated)
    """

    template_fields: Sequence[str] = ("source",)
    ui_color = "#e6f1f2"

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Read the streams; an invalid file fails this task before any sink is stopped."""
        streams = read_streams(checked_text(self.source, "source"), Path(context["dag"].folder))
        wanted = {stream["table"] for stream in streams}
        self.log.info("%s declares %d stream(s): %s", self.source, len(streams), ", ".join(sorted(wanted)))
        for directory in sorted(jobs_root(self.hook).glob("*.*")):
            job = newest_job(directory)
            is_ours = job is not None and job.owner == _owner(context["ti"].dag_id, directory.name)
            if job is not None and is_ours and directory.name not in wanted and job.report().state.is_active:
                self.log.info("%s is no longer declared: stopping its sink in %s", directory.name, job.directory)
                job.request_stop(f"{SUPERSEDED}it is no longer declared")
        return streams


class SuperviseSinkOperator(StreamSinkOperator):
    """Runs one table's sink until the DAG run hands it over to the next run, which attaches to the same sink."""

    def _sink_owner(self, context: Context) -> str:
        return _owner(context["ti"].dag_id, self.table)

    def _release_path(self, context: Context) -> str | None:
        return str(_release_of(context, self.hook, self.jobs_directory))


class AwaitStreamChangesOperator(CatalogOperator):
    """Waits, without a worker, until the declared streams differ from ``streams``, then hands over the run's sinks.

    A file that can't be read does not count as a change: its error is logged, and the sinks keep running.

    :param source: as for `ReadStreamsOperator`. (templated)
    :param streams: the result of `ReadStreamsOperator`. (templated)
    :param poll_seconds: seconds between checks of the file's modification.
    :param look_seconds: seconds after which the source is read in any case, which detects changes of a function.
    """

    template_fields: Sequence[str] = ("source", "streams")
    ui_color = "#e6f1f2"

    def __init__(
        self, *, source: str, streams: Any, poll_seconds: float = 5, look_seconds: float = 600, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.streams = streams
        self.poll_seconds = poll_seconds
        self.look_seconds = look_seconds

    def execute(self, context: Context) -> str:
        """Compare the streams; if they are equal, wait until the file is modified."""
        return self._compare(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:  # noqa: ARG002  Airflow's signature
        """Compare again after the file was modified."""
        return self._compare(context)

    def _compare(self, context: Context) -> str:
        from storage_lib.errors import InvalidInputError

        source, folder = checked_text(self.source, "source"), Path(context["dag"].folder)
        path = folder / source
        stamp = file_stamp(path)  # before reading, so that the next check detects a write in between
        try:
            is_changed = _fingerprint(read_streams(source, folder)) != _fingerprint(self.streams or [])
        except InvalidInputError as wrong:
            self.log.error("The sinks keep running as declared before: %s", wrong)  # noqa: TRY400  the message suffices
            is_changed = False
        if not is_changed:
            trigger = FileChangeTrigger(
                path=str(path), stamp=stamp, poll_seconds=self.poll_seconds, look_seconds=self.look_seconds
            )
            self.defer(trigger=trigger, method_name="execute_complete")
        release = _release_of(context, self.hook)
        release.parent.mkdir(parents=True, exist_ok=True)
        release.touch()
        self.log.info("The declared streams have changed; the next run takes over the sinks")
        return str(release)


def _owner(dag_id: str, table: str) -> str:
    return f"airflow/{dag_id}/{table}"


def _release_of(context: Context, hook: DynamicTableHook, chosen: str | None = None) -> Path:
    ti = context["ti"]
    name = hashlib.sha256(f"{ti.dag_id}/{ti.run_id}".encode()).hexdigest()[:32]
    return jobs_root(hook, chosen) / RELEASES / name


def _fingerprint(streams: object) -> str:
    return json.dumps(streams, sort_keys=True, default=str)
