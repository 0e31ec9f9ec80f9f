"""Airflow's metrics: functions of a module, which before Airflow 3.3 are methods of the class ``Stats``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["stats"]

if TYPE_CHECKING or AirflowFeature.FUNCTIONS_OF_METRICS.is_here:
    from airflow.sdk.observability import stats
elif AirflowFeature.NAMES_OF_THE_SDK.is_here:
    from airflow.sdk.observability.stats import Stats as stats  # noqa: N813  newer versions have a module of this name
else:
    from airflow.stats import Stats as stats  # noqa: N813  newer versions have a module of this name
