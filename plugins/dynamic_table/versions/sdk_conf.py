"""Airflow's configuration, which before Airflow 3.2 is not in its SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamic_table.versions.airflow_feature import AirflowFeature

__all__ = ["conf"]

if TYPE_CHECKING or AirflowFeature.NAMES_OF_THE_SDK.is_here:
    from airflow.sdk import conf
else:
    from airflow.configuration import conf
