"""Airflow plugin, loaded through the entry point ``airflow.plugins``: pages, listeners, policies and macros."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from jinja2 import pass_context

from dynamic_table.arguments.interval_changes import changes_for_template
from dynamic_table.pages.lazy_app import LazyApp
from dynamic_table.policies import pool_policy
from dynamic_table.policies.allowed_hosts import AllowedHosts
from dynamic_table.policies.one_write_at_a_time import OneWriteAtATime
from dynamic_table.sinks import sink_listener
from dynamic_table.versions.sdk_plugin import AirflowPlugin

__all__ = ["DynamicTablePlugin"]

PREFIX = "/dynamic-tables"
# Behind a proxy, Airflow may be served below a path prefix.
BASE = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


@pass_context
def interval_changes(context: Any, table: str, conn_id: str = "dynamic_table_default") -> Any:
    """Return the snapshots of the run's interval; see ``dynamic_table.arguments.interval_changes``."""
    return changes_for_template(context, table, conn_id)


class DynamicTablePlugin(AirflowPlugin):
    """Registers the pages, the listener that stops sinks, the pool policy, a macro and two middlewares.

    The middlewares check the Host header of requests to the API server and, on SQLite, serialise its writes.
    """

    name = "dynamic_table"
    listeners = [sink_listener]  # noqa: RUF012  as Airflow declares it
    fastapi_apps = [{"app": LazyApp(), "url_prefix": PREFIX, "name": "Dynamic tables"}]  # noqa: RUF012  likewise
    fastapi_root_middlewares = [  # noqa: RUF012  likewise; the last one sees a request first
        {"middleware": OneWriteAtATime, "name": "One write at a time"},
        {"middleware": AllowedHosts, "name": "Allowed hosts"},
    ]
    macros = [interval_changes]  # noqa: RUF012  likewise
    external_views = [  # noqa: RUF012  likewise
        {
            "name": "Dynamic tables",
            "href": f"{BASE}{PREFIX}/tables",
            "destination": "nav",
            "category": "browse",
            "url_route": "dynamic_tables",
        }
    ]

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:  # noqa: ARG003  as Airflow calls it
        """Register the pool policy in every process that creates task instances."""
        pool_policy.register()
