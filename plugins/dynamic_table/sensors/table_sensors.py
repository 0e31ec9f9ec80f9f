"""Sensors that wait until a table meets a condition, on a worker or, if deferrable, in the triggerer."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from dynamic_table.arguments.partition_argument import checked_partition
from dynamic_table.arguments.rendered_argument import (
    checked_count,
    checked_moment,
    checked_number,
    checked_text,
    is_nothing,
)
from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.events.table_conditions import (
    Condition,
    LogLagBelow,
    PartitionHasData,
    SinkIsHealthy,
    SnapshotNewerThan,
    spelled,
)
from dynamic_table.hook import DynamicTableHook
from dynamic_table.sinks.sink_settings import jobs_root
from dynamic_table.triggers.table_condition_trigger import TableConditionTrigger
from dynamic_table.versions.policed_retries import PolicedRetries
from dynamic_table.versions.sdk_conf import conf
from dynamic_table.versions.sdk_exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow.sdk import Context

__all__ = ["LogLagSensor", "PartitionSensor", "SinkHealthSensor", "SnapshotSensor", "TableSensor"]


class TableSensor(TextTemplates, PolicedRetries, BaseSensorOperator):
    """Base of the sensors of one table. The task's result describes the table when the condition was met.

    :param table: ``database.table``. (templated)
    :param dynamic_table_conn_id: the connection.
    :param deferrable: wait in the triggerer instead of on a worker.
    """

    template_fields: Sequence[str] = ("table",)
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        table: str,
        dynamic_table_conn_id: str = DynamicTableHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.dynamic_table_conn_id = dynamic_table_conn_id
        self.deferrable = deferrable

    @cached_property
    def hook(self) -> DynamicTableHook:
        """The hook that opens the table."""
        return DynamicTableHook(dynamic_table_conn_id=self.dynamic_table_conn_id)

    def condition(self) -> Condition:
        """Return the condition from the rendered arguments; raises InvalidInputError for invalid ones."""
        raise NotImplementedError

    def poke(self, context: Context) -> PokeReturnValue:  # noqa: ARG002  Airflow's signature
        """Check the condition once."""
        table = self.hook.load_table(checked_text(self.table, "table"))
        look = self.condition().look(table)
        self.log.info("%s", look.text)
        return PokeReturnValue(is_done=look.is_met, xcom_value=dict(look.result))

    def execute(self, context: Context) -> Any:
        """Wait here, or check once and defer to the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        first = self.poke(context)
        if not first.is_done:
            self.defer(
                trigger=TableConditionTrigger(
                    table=self.table,
                    condition=spelled(self.condition()),
                    dynamic_table_conn_id=self.dynamic_table_conn_id,
                    poll_seconds=self.poke_interval,
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return first.xcom_value

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the trigger's result, or raise its error."""
        if "error" in event:
            message = f"{event['error']}: {event['message']}"
            raise AirflowFailException(message)
        if "result" not in event:
            message = f"the trigger of {self.table} fired with {event!r}"
            raise AirflowException(message)
        self.log.info("%s", event["text"])
        return dict(event["result"])


class PartitionSensor(TableSensor):
    """Waits until a partition exists and has rows.

    :param partition: ``{column: value}``. (templated)
    :param min_rows: minimum number of rows in its files, before versions of a key are merged. (templated)
    """

    template_fields: Sequence[str] = (*TableSensor.template_fields, "partition", "min_rows")
    template_fields_renderers: ClassVar[dict[str, str]] = {"partition": "json"}

    def __init__(self, *, partition: Mapping[str, Any] | str, min_rows: int | str = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partition = partition
        self.min_rows = min_rows

    def condition(self) -> Condition:
        """Return the condition that the partition has enough rows."""
        rows = checked_count(self.min_rows, "min_rows", least=1)
        return PartitionHasData(partition=checked_partition(self.partition), min_rows=rows)


class SnapshotSensor(TableSensor):
    """Waits for a snapshot newer than a given snapshot or time; with neither, for the first snapshot.

    :param newer_than_snapshot: a snapshot's id. (templated)
    :param newer_than: a time, such as ``{{ data_interval_end }}``: a datetime or its ISO text with a zone. (templated)
    """

    template_fields: Sequence[str] = (*TableSensor.template_fields, "newer_than_snapshot", "newer_than")

    def __init__(
        self,
        *,
        newer_than_snapshot: int | str | None = None,
        newer_than: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.newer_than_snapshot = newer_than_snapshot
        self.newer_than = newer_than

    def condition(self) -> Condition:
        """Return the condition that a newer snapshot exists."""
        least = self.newer_than_snapshot
        return SnapshotNewerThan(
            snapshot_id=0 if is_nothing(least) else checked_count(least, "newer_than_snapshot"),
            timestamp_millis=0 if is_nothing(self.newer_than) else checked_moment(self.newer_than, "newer_than"),
        )


class LogLagSensor(TableSensor):
    """Waits until a table's files have caught up with its log (``log.consistency=eventual``).

    :param max_records: maximum number of log records that are not in the files yet. (templated)
    """

    template_fields: Sequence[str] = (*TableSensor.template_fields, "max_records")

    def __init__(self, *, max_records: int | str = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_records = max_records

    def condition(self) -> Condition:
        """Return the condition that the lag is small enough."""
        return LogLagBelow(max_records=checked_count(self.max_records, "max_records"))


class SinkHealthSensor(TableSensor):
    """Waits until the table's sink is healthy: it runs, has finished a batch, and does not lag too much.

    With a ``timeout`` and ``soft_fail=False`` it serves as an alarm.

    :param heartbeat_age_max: maximum age of the heartbeat in seconds. (templated)
    :param lag_max: maximum number of records in its topic that are not in the table; None: no limit. (templated)
    :param commit_age_max: maximum age of the newest commit in seconds; None: no limit. (templated)
    :param jobs_directory: directory of the sinks, as for ``StreamSinkOperator``. (templated)
    """

    template_fields: Sequence[str] = (
        *TableSensor.template_fields,
        "heartbeat_age_max",
        "lag_max",
        "commit_age_max",
        "jobs_directory",
    )

    def __init__(
        self,
        *,
        heartbeat_age_max: float | str = 60,
        lag_max: int | str | None = None,
        commit_age_max: float | str | None = None,
        jobs_directory: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.heartbeat_age_max = heartbeat_age_max
        self.lag_max = lag_max
        self.commit_age_max = commit_age_max
        self.jobs_directory = jobs_directory

    def condition(self) -> Condition:
        """Return the condition that the sink is healthy."""
        lag, age = self.lag_max, self.commit_age_max
        return SinkIsHealthy(
            jobs_directory=str(jobs_root(self.hook, self.jobs_directory)),
            heartbeat_age_max=checked_number(self.heartbeat_age_max, "heartbeat_age_max"),
            lag_max=None if is_nothing(lag) else checked_count(lag, "lag_max"),
            commit_age_max=None if is_nothing(age) else checked_number(age, "commit_age_max"),
        )
