"""Refreshes in a process that starts Spark only for a refresh that needs it.

    a table ─▶ DuckDB, in this process ─▶ has to leave it to Spark ─▶ Spark starts during the other tables' refreshes
                                          from then on, Spark's session, which asks DuckDB first, too

The start of Spark takes ten seconds of processor time and a gigabyte of memory; most refreshes need neither.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from storage_lib.duckdb.small_refresh import small_refresh
from storage_lib.materialized.plan.refresh_result import RefreshResult, RefreshWork
from storage_lib.spark.engine.refresh import refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

_LOGGER = logging.getLogger(__name__)


class SparkStartError(Exception):
    """Spark did not start; the cause says why. No table is at fault, so this is not a ``StorageError``."""


class RefreshOnDemand:
    """Refreshes tables, one after the other. ``start`` starts Spark; it runs once, in another thread.

    The caller knows that the session will have no setting by which expressions have other values
    (``unusual_configuration``), or calls ``wait_for_spark`` before the first refresh.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._session: Future[SparkSession] | None = None
        self._waiting: set[str] = set()

    def __call__(self, table: DynamicTable) -> RefreshResult:
        """Refresh a table as ``refresh`` does. A table that needs Spark while it starts is not refreshed yet.

        Raises ``SparkStartError``, and as ``refresh``.
        """
        if self._session is not None and self._session.done():
            return refresh(self._started(self._session), table)
        if table.name not in self._waiting:
            result = small_refresh(table)
            if result is not None:
                return result
            _LOGGER.info("table %s: its refresh waits for the start of Spark", table.name)
            self._waiting.add(table.name)
            self._begin()
        return RefreshResult(mode=RefreshWork.NONE, reason="Spark starts")

    def wait_for_spark(self) -> None:
        """Start Spark, and return when it has started. Raises ``SparkStartError``."""
        self._started(self._begin())

    def _begin(self) -> Future[SparkSession]:
        if self._session is None:
            future: Future[SparkSession] = Future()
            self._session = future

            def run() -> None:
                try:
                    future.set_result(self._start())
                except BaseException as error:  # noqa: BLE001  the thread that refreshes raises it
                    future.set_exception(error)

            # A daemon, because a process that is asked to stop does not wait for Spark to start.
            threading.Thread(target=run, name="start-of-spark", daemon=True).start()
        return self._session

    @staticmethod
    def _started(session: Future[SparkSession]) -> SparkSession:
        try:
            return session.result()
        except Exception as error:
            raise SparkStartError(str(error)) from error
