"""Airflow's mixin for jobs that a retry finds again; before Airflow 3.3, which has none, ours of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["ResumableJobMixin"]

if TYPE_CHECKING or AirflowFeature.TASK_STATE.is_here:
    from airflow.sdk import ResumableJobMixin
else:
    from dynamic_table.versions.own_resumable_job import ResumableJobMixin
