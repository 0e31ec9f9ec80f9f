"""The one file of this folder that Airflow scans; the rest is the package ``dynamic_table``, imported by name."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.sdk.plugins_manager import AirflowPlugin

from dynamic_table import sink_listener
from dynamic_table.pages.lazy_app import LazyApp

__all__ = ["DynamicTablePlugin"]

PREFIX = "/dynamic-tables"
# Airflow may live below a path of its own behind a proxy.
BASE = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


class DynamicTablePlugin(AirflowPlugin):
    """Brings the pages and the listener that stops sinks. Operators, hook and triggers need no registration."""

    name = "dynamic_table"
    listeners = [sink_listener]  # noqa: RUF012  as Airflow declares it
    fastapi_apps = [{"app": LazyApp(), "url_prefix": PREFIX, "name": "Dynamic tables"}]  # noqa: RUF012  likewise
    external_views = [  # noqa: RUF012  likewise
        {
            "name": "Dynamic tables",
            "href": f"{BASE}{PREFIX}/tables",
            "destination": "nav",
            "category": "browse",
            "url_route": "dynamic_tables",
        }
    ]
