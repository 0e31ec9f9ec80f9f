"""Keeps materialized tables fresh: a separate process that the task starts, monitors and stops."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import checked_names, checked_number
from dynamic_table.operators.detached_job import DetachedJobOperator
from dynamic_table.policies.spark_settings import checked_master, checked_spark_conf
from dynamic_table.sinks.sink_settings import jobs_root, secrets_apart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from dynamic_table.sinks.sink_job import SinkJob

__all__ = ["REFRESHER_FACTS_KEY", "RefresherOperator"]

REFRESHER_FACTS_KEY = "refresher"  # key of the XCom
REFRESHER_COMMAND = (sys.executable, "-m", "storage_lib.spark.refresher")
TABLES_SHOWN = 100


class RefresherOperator(DetachedJobOperator):
    """Runs ``storage_lib.spark.refresher`` until a user stops it: tables are fresh within seconds of a commit.

    The process outlives the worker, the scheduler and the triggerer: the next try finds it by the id in the task's
    state store. Marking the task as success or failed, or clearing it, ends the process after the refresh that runs.
    After a transient failure the process is restarted within the same try; the task fails once it has failed more than
    ``retries`` times in a row without a refresh. A table whose refresh fails does not stop the others: its error is in
    the log and in the XCom ``refresher``.

    The same set of tables has one refresher at a time. Two refreshers of one table, or a refresher and a DAG, disturb
    nothing: one of them commits.

    :param tables: ``database.table`` of the tables; None or empty: all of the catalog, also later ones. (templated)
    :param refresh_poll_seconds: pause in seconds between two looks at the sources. (templated)
    :param master: Spark's master, such as ``local[2]``; has to be allowed (``spark_settings``). None: the connection's
        master, or else Spark's configuration. (templated)
    :param spark_conf: Spark settings; each has to be allowed (``spark_settings``). (templated)
    :param jobs_directory: directory of jobs; default: the connection's extra ``jobs_directory``, or else
        ``dynamic_table_jobs`` in Airflow's home. (templated)
    :param deferrable: wait in the triggerer instead of on a worker.
    :param poll_seconds: seconds between checks of the process.
    :param stale_seconds: age in seconds at which the heartbeat is stale and the process counts as lost.
    :param report_seconds: seconds between reports of the tables' last refreshes to the log and the XCom ``refresher``;
        None: no reports. A deferred task occupies a worker for a moment for each report.
    :param stop_timeout_seconds: how long to wait for an earlier process that is being stopped.
    :param command: the command to start, for a process in another Python environment.
    """

    template_fields: Sequence[str] = ("tables", "refresh_poll_seconds", "master", "spark_conf", "jobs_directory")
    template_fields_renderers: ClassVar[dict[str, str]] = {"tables": "json", "spark_conf": "json"}
    kind = "refresher"
    progress = ("refresh_count", "a refresh")
    ui_color = "#d9ecd9"

    def __init__(
        self,
        *,
        tables: Sequence[str] | str | None = None,
        refresh_poll_seconds: float | str = 1,
        master: str | None = None,
        spark_conf: Mapping[str, str] | str | None = None,
        command: Sequence[str] = REFRESHER_COMMAND,
        **kwargs: Any,
    ) -> None:
        super().__init__(command=command, **kwargs)
        self.tables: Any = tables
        self.refresh_poll_seconds = refresh_poll_seconds
        self.master = master
        self.spark_conf: Any = spark_conf

    @property
    def subject(self) -> str:
        """The tables."""
        return ", ".join(self._names()) or "all materialized tables"

    def job_home(self) -> Path:
        """Return the directory of the jobs for this set of tables; a table's sinks are in another."""
        names = self._names()
        digest = hashlib.sha256(",".join(names).encode()).hexdigest()[:8]
        name = names[0] if len(names) == 1 else digest if names else "all"
        return jobs_root(self.hook, self.jobs_directory) / "refresher" / name

    def prepare(self) -> None:
        """Open the tables; one that is missing or not materialized fails here."""
        from storage_lib.materialized.sources.source_tables import definition_of

        catalog = self.hook.get_conn()
        for name in self._names():
            definition_of(catalog.load_table(name))

    def arguments(self) -> dict[str, Any]:
        """Return the part of the specification that the arguments give; raises InvalidInputError for invalid ones."""
        return {
            "warehouse": self.hook.warehouse,
            "tables": self._names(),
            "poll_seconds": checked_number(self.refresh_poll_seconds, "refresh_poll_seconds"),
            "master": checked_master(self.master, self.hook),
            "spark_conf": checked_spark_conf(self.spark_conf),
        }

    def specification(self, job: SinkJob, wanted: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
        """Return the JSON of the job's ``RefresherSpec``, and its secrets as environment variables."""
        from storage_lib.materialized.service.refresher_spec import RefresherSpec

        shown, secret, environment = secrets_apart(self.hook.options, self.hook.secret_keys)
        spec = RefresherSpec(
            **wanted,
            catalog_options=shown,
            secret_options=secret,
            heartbeat_path=str(job.heartbeat_path),
            stop_path=str(job.stop_path),
        )
        return spec.to_json(), environment

    def tell(self, context: Context) -> None:
        """Report the state, and the last refresh or error of each table."""
        report = self.job.report()
        facts = {"job": str(self.job.directory), "state": report.state.value, **_facts(report.heartbeat)}
        for name, last in facts["tables"].items():
            self.log.info("%s %.0f s ago: %s", name, last["age_seconds"], last)
        context["ti"].xcom_push(key=REFRESHER_FACTS_KEY, value=facts)

    def result(self, heartbeat: Mapping[str, Any]) -> dict[str, Any]:
        """Return the number of refreshes, and the last one of each table."""
        return {"op": "refresher", "job": str(self.job.directory), **_facts(heartbeat)}

    def _names(self) -> tuple[str, ...]:
        return tuple(sorted(set(checked_names(self.tables, "tables"))))


def _facts(heartbeat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the count, and the newest hundred of the tables' last refreshes with their ages in seconds."""
    tables: Mapping[str, Any] = heartbeat.get("tables") or {}
    newest = sorted(tables.items(), key=lambda item: -item[1]["millis"])[:TABLES_SHOWN]
    now = time.time()
    return {
        "refresh_count": heartbeat.get("refresh_count", 0),
        "tables": {name: {**last, "age_seconds": max(0.0, now - last["millis"] / 1000)} for name, last in newest},
    }
