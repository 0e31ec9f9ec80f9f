"""Runs a streaming sink into a table: a separate process that the task starts, monitors and stops."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import (
    checked_count,
    checked_flag,
    checked_names,
    checked_number,
    is_nothing,
)
from dynamic_table.events.metrics import report_sink
from dynamic_table.operators.detached_job import DetachedJobOperator, SinkFailedError
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.allowed_servers import OPTIONS_OF_A_TOPIC, refuse_other_servers_of_form
from dynamic_table.policies.spark_settings import checked_master, checked_spark_conf
from dynamic_table.quality.row_expectations import ROW_CHECK, checked_expectations_of
from dynamic_table.sinks.sink_facts import sink_facts
from dynamic_table.sinks.sink_job import (
    SinkJob,
)
from dynamic_table.sinks.sink_settings import (
    checked_open_options,
    checked_source,
    checkpoint_directory,
    jobs_root,
    secrets_apart,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from storage_lib.spark.stream.sink.sink_spec import SinkCheck, SinkSource, SinkSpec

__all__ = ["SINK_FACTS_KEY", "SinkFailedError", "StreamSinkOperator"]

SINK_FACTS_KEY = "sink"  # key of the XCom

SINK_COMMAND = (sys.executable, "-m", "storage_lib.spark.streaming_sink")


class StreamSinkOperator(DetachedJobOperator, TableOperator):
    """Runs a streaming sink into a table until a user stops it.

    The sink outlives the worker, the scheduler and the triggerer: the next try finds it by the id in the task's state
    store. Marking the task as success or failed, or clearing it, ends the sink cleanly after its current batch. A
    table has one sink at a time.

    Records of a topic go into the table as ``ingest`` applies them, with its options in ``source["options"]``, unless
    ``schema`` or ``select`` asks for other rows. The result counts rejected and skipped records.

    After a transient failure (an outage, a lost lease) the sink is restarted from its checkpoint after seconds to
    minutes. A restart does not use up a try, because a stream may run for years: the task fails once the sink has
    failed more than ``retries`` times in a row without finishing a batch.

    :param table: ``database.table`` to write into. (templated)
    :param source: the source: ``kind`` (``debezium_json`` or ``dynamic_table``), ``name`` (topic or table), and
        optionally ``schema`` and ``options``. (templated)
    :param select: Spark SQL expressions over the source's columns; None: all columns unchanged. (templated)
    :param expectations: expectations as for ``ValidateTableOperator``. Rows of a topic that do not meet one of severity
        ``reject`` are refused, as option ``source.on-reject`` says. (templated)
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
        "expectations",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "source": "json",
        "select": "json",
        "write_options": "json",
        "spark_conf": "json",
        "expectations": "json",
    }
    kind = "sink"
    progress = ("batch_id", "finishing a batch")
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
        expectations: Sequence[Mapping[str, Any]] | str | None = None,
        command: Sequence[str] = SINK_COMMAND,
        **kwargs: Any,
    ) -> None:
        super().__init__(command=command, **kwargs)
        self.source: Any = source
        self.select: Any = select
        self.trigger_seconds = trigger_seconds
        self.max_rows_per_trigger = max_rows_per_trigger
        self.available_now = available_now
        self.write_options: Any = write_options
        self.master = master
        self.spark_conf: Any = spark_conf
        self.expectations: Any = expectations

    @property
    def subject(self) -> str:
        """The table."""
        return self.table

    def job_home(self) -> Path:
        """Return the directory of the table's jobs."""
        return jobs_root(self.hook, self.jobs_directory) / self.table

    def prepare(self) -> None:
        """Open the table; an invalid one fails here rather than in the detached process."""
        self.hook.load_table(self.table)

    def specification(self, job: SinkJob, wanted: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
        """Return the JSON of the job's ``SinkSpec``, and its secrets as environment variables."""
        shown, secret, environment = secrets_apart(self.hook.options, self.hook.secret_keys)
        return self._spec(job, wanted, catalog_options=shown, secret_options=secret).to_json(), environment

    def tell(self, context: Context) -> None:
        """Report the sink's heartbeat, lag and last commit."""
        facts = sink_facts(self.job, lambda: self.hook.load_table(self.table))
        report_sink(self.table, facts)
        context["ti"].xcom_push(key=SINK_FACTS_KEY, value=facts)

    def result(self, heartbeat: Mapping[str, Any]) -> dict[str, Any]:
        """Return the last batch and the number of rows."""
        facts = {key: heartbeat[key] for key in ("batch_id", "row_count", "query_id") if key in heartbeat}
        noted = ("rejected_count", "skipped_count", "compaction_error", "tiering_error")
        facts |= {key: heartbeat[key] for key in noted if heartbeat.get(key)}
        return {"table": self.table, "op": "stream", "job": str(self.job.directory), **facts}

    def arguments(self) -> dict[str, Any]:
        """Return the part of the specification that the arguments give; raises InvalidInputError for invalid ones."""
        source = checked_source(self.source)
        refuse_other_servers_of_form(source.options, self.hook, of_source=OPTIONS_OF_A_TOPIC)
        return {
            "warehouse": self.hook.warehouse,
            "table": self.table,
            "source": source,
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
            "check": self._check(source),
        }

    def _check(self, source: SinkSource) -> SinkCheck | None:
        from storage_lib.errors import InvalidInputError
        from storage_lib.spark.stream.sink.sink_spec import SinkCheck

        if is_nothing(self.expectations):
            return None
        if source.kind != "debezium_json" or source.schema or checked_names(self.select, "select"):
            message = (
                f"{self.table}: expectations refuse records of a topic that is applied to the table; leave out schema "
                "and select, or validate the table"
            )
            raise InvalidInputError(message)
        found, _ = checked_expectations_of(self.expectations, self.table, Path(self.dag.folder))
        return SinkCheck(function=ROW_CHECK, given=found)

    @staticmethod
    def _spec(
        job: SinkJob, wanted: Mapping[str, Any], *, catalog_options: dict[str, str], secret_options: dict[str, str]
    ) -> SinkSpec:
        from storage_lib.spark.stream.sink.sink_spec import SinkSpec

        return SinkSpec(
            **wanted,
            checkpoint_location=str(checkpoint_directory(job.directory.parent, wanted["source"])),
            heartbeat_path=str(job.heartbeat_path),
            stop_path=str(job.stop_path),
            catalog_options=catalog_options,
            secret_options=secret_options,
        )
