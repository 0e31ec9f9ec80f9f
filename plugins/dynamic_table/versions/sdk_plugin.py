"""The base class of Airflow's plugins, which before Airflow 3.2 is not in its SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["AirflowPlugin"]

if TYPE_CHECKING or AirflowFeature.NAMES_OF_THE_SDK.is_here:
    from airflow.sdk.plugins_manager import AirflowPlugin
else:
    from airflow.plugins_manager import AirflowPlugin
