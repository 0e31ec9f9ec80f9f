"""One sink for every stream that a file declares: who reads it, who keeps a sink, who waits for the file to change.

A run's tasks watch the sinks until the file changes. Then the run hands them over: its tasks end, the sinks go on, and
the next run attaches to those that are still wanted as they are, starts what is new and stops what is gone.
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
from dynamic_table.sinks.sink_job import newest_job
from dynamic_table.sinks.sink_settings import jobs_root
from dynamic_table.triggers.file_change_trigger import FileChangeTrigger, file_stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from dynamic_table.hook import DynamicTableHook

__all__ = ["AwaitStreamChangesOperator", "ReadStreamsOperator", "SuperviseSinkOperator"]

RELEASES = ".released"  # of the jobs' directory: a file for each run that has handed over its sinks


class ReadStreamsOperator(CatalogOperator):
    """Returns ``SuperviseSinkOperator``'s arguments of every declared stream, and stops the sinks of all others.

    Only those that earlier runs of this DAG started: a sink of somebody else's is left alone.

    :param source: a YAML file, relative to the DAG file's folder or in full, or ``package.module:function``.
        (templated)
    """

    template_fields: Sequence[str] = ("source",)
    ui_color = "#e6f1f2"

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Read them; everything that is wrong in the file is told here, and no sink is touched then."""
        streams = read_streams(checked_text(self.source, "source"), Path(context["dag"].folder))
        wanted = {stream["table"] for stream in streams}
        self.log.info("%s declares %d stream(s): %s", self.source, len(streams), ", ".join(sorted(wanted)))
        for directory in sorted(jobs_root(self.hook).glob("*.*")):
            job = newest_job(directory)
            is_ours = job is not None and job.owner == _owner(context["ti"].dag_id, directory.name)
            if job is not None and is_ours and directory.name not in wanted and job.report().state.is_active:
                self.log.info("%s is no longer declared: its sink in %s is stopped", directory.name, job.directory)
                job.request_stop("it is no longer declared")
        return streams


class SuperviseSinkOperator(StreamSinkOperator):
    """Keeps one table's sink running until its run hands it over; whichever run of the DAG, the sink is the same."""

    def _sink_owner(self, context: Context) -> str:
        return _owner(context["ti"].dag_id, self.table)

    def _release_path(self, context: Context) -> str | None:
        return str(_release_of(context, self.hook, self.jobs_directory))


class AwaitStreamChangesOperator(CatalogOperator):
    """Waits, without a worker, until other streams are declared than ``streams``; then hands over the run's sinks.

    A file that can't be read is no change: its error is in the log, and the sinks go on.

    :param source: as for `ReadStreamsOperator`. (templated)
    :param streams: what that returned. (templated)
    :param poll_seconds: how often to look whether the file was touched.
    :param look_seconds: how often to read it in any case; a function's answer can't be told otherwise.
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
        """Compare; wait for the file to be touched while there is no difference."""
        return self._compare(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:  # noqa: ARG002  says nothing more
        """Compare again after the file was touched."""
        return self._compare(context)

    def _compare(self, context: Context) -> str:
        from storage_lib.errors import InvalidInputError

        source, folder = checked_text(self.source, "source"), Path(context["dag"].folder)
        path = folder / source
        stamp = file_stamp(path)  # before it is read: what is written meanwhile is seen at the next look
        try:
            is_changed = _fingerprint(read_streams(source, folder)) != _fingerprint(self.streams or [])
        except InvalidInputError as wrong:
            self.log.error("The sinks go on as they were declared before: %s", wrong)  # noqa: TRY400  it says it all
            is_changed = False
        if not is_changed:
            trigger = FileChangeTrigger(
                path=str(path), stamp=stamp, poll_seconds=self.poll_seconds, look_seconds=self.look_seconds
            )
            self.defer(trigger=trigger, method_name="execute_complete")
        release = _release_of(context, self.hook)
        release.parent.mkdir(parents=True, exist_ok=True)
        release.touch()
        self.log.info("Other streams are declared now; the next run takes over the sinks")
        return str(release)


def _owner(dag_id: str, table: str) -> str:
    return f"airflow/{dag_id}/{table}"


def _release_of(context: Context, hook: DynamicTableHook, chosen: str | None = None) -> Path:
    ti = context["ti"]
    name = hashlib.sha256(f"{ti.dag_id}/{ti.run_id}".encode()).hexdigest()[:32]
    return jobs_root(hook, chosen) / RELEASES / name


def _fingerprint(streams: object) -> str:
    return json.dumps(streams, sort_keys=True, default=str)
