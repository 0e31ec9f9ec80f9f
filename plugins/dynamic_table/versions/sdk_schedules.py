"""Airflow's schedules, which before Airflow 3.2 are not in its SDK; one for runs of a day each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["DAY_OF_RUN", "AssetOrTimeSchedule", "DeltaTriggerTimetable", "daily_partitions"]

if TYPE_CHECKING or AirflowFeature.NAMES_OF_THE_SDK.is_here:
    from airflow.sdk import AssetOrTimeSchedule, DeltaTriggerTimetable
else:
    from airflow.timetables.assets import AssetOrTimeSchedule
    from airflow.timetables.trigger import DeltaTriggerTimetable

# A run that a user starts has a date as well, which is not the day that the user means.
DAY_OF_RUN = (
    "dag_run.partition_key"
    if AirflowFeature.PARTITIONED_RUNS.is_here
    else "(ds if dag_run.run_type in ('scheduled', 'backfill') else None)"
)
"""Expression of a template: the day of a run of ``daily_partitions``; None if the run is for no day."""


def daily_partitions() -> Any:
    """Return a schedule of a run at midnight (UTC) for the day before; a backfill makes runs for a range of days.

    The day is the partition key of a run, or the begin of its data interval where a backfill can't name partitions. The
    DAG needs no start date.
    """
    if AirflowFeature.PARTITIONED_RUNS.is_here:
        from airflow.sdk import CronPartitionTimetable

        return CronPartitionTimetable("0 0 * * *", timezone="UTC", key_format="%Y-%m-%d", run_offset=-1)
    from airflow.timetables.interval import CronDataIntervalTimetable

    return CronDataIntervalTimetable("0 0 * * *", timezone="UTC")
