"""The one file of this folder that Airflow scans; the rest is the package ``dynamic_table``, imported by name."""

from __future__ import annotations

from airflow.sdk.plugins_manager import AirflowPlugin

__all__ = ["DynamicTablePlugin"]


class DynamicTablePlugin(AirflowPlugin):
    """Says that dynamic tables are here. Operators, hook and trigger need no registration."""

    name = "dynamic_table"
