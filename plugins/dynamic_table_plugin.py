"""The one file of this folder that Airflow scans; the rest is the package ``dynamic_table``, imported by name."""

from __future__ import annotations

from airflow.sdk.plugins_manager import AirflowPlugin

from dynamic_table import sink_listener

__all__ = ["DynamicTablePlugin"]


class DynamicTablePlugin(AirflowPlugin):
    """Brings the listener that stops sinks. Operators, hook and trigger need no registration."""

    name = "dynamic_table"
    listeners = [sink_listener]  # noqa: RUF012  as Airflow declares it
