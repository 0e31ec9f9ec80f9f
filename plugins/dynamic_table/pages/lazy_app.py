"""ASGI application of the pages, which the first request imports.

Every Airflow process loads plugins, but only the API server serves requests; importing FastAPI and Airflow's security
would cost each process a second and 29 MB.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["LazyApp"]


class LazyApp:
    """Passes every request to ``dynamic_table.pages.pages_app:app``."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request to the application."""
        if self._app is None:
            self._app = importlib.import_module("dynamic_table.pages.pages_app").app
        await self._app(scope, receive, send)
