"""Latency of small batches written by plain Python without Spark, and the cost of a lease."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.streams.age_observer import AgeObserver, Ages
from benchmarks.streams.generator import COLUMNS, rows_born
from storage_lib import open_catalog

if TYPE_CHECKING:
    from storage_lib import DynamicTable

__all__ = ["ages_of_direct_writes", "seconds_of_a_lease", "seconds_until_a_successor_commits"]

BATCH_ROWS = 100
_CHECKOUT = Path(__file__).resolve().parents[2]
# Holds its lease, with written rows and an open log transaction, until it is killed.
_HOLDER = """
import sys, time
import numpy as np
from benchmarks.streams.generator import rows_born
from storage_lib import open_catalog
table = open_catalog(sys.argv[1], {"log.kafka.bootstrap.servers": sys.argv[2]}).load_table(sys.argv[3])
builder = table.new_write()
order = builder.begin(commit_user="holder")
write = builder.open_task(order)
write.write(rows_born(np.arange(100)))
write.prepare_commit()
print("holds", flush=True)
time.sleep(600)
"""


def ages_of_direct_writes(
    servers: str, warehouse: str, *, batches: int, options: dict[str, str], pause_seconds: float = 0.05
) -> tuple[Ages, list[float]]:
    """Return the ages of rows at a reader of the log, and the seconds of each append of a hundred rows."""
    table = new_table(servers, warehouse, options)
    took = []
    with AgeObserver(servers, table.options.log_kafka_topic or table.name, 1) as observer:
        for number in range(batches + 5):
            if number == 5:
                since = time.time()
            born = time.time_ns() // 1000
            started = time.perf_counter()
            table.append(rows_born(np.full(BATCH_ROWS, born, np.int64) + np.arange(BATCH_ROWS)))
            took.append(time.perf_counter() - started)
            time.sleep(pause_seconds)
        deadline = time.monotonic() + 60
        while observer.row_count < BATCH_ROWS * (batches + 5) and time.monotonic() < deadline:
            time.sleep(0.01)
        return observer.ages(since), took[5:]


def seconds_of_a_lease(table: DynamicTable, count: int) -> list[float]:
    """Return the seconds of each acquisition and release of the table's uncontended lease, without a write."""
    took = []
    for _ in range(count):
        started = time.perf_counter()
        write_context = table.new_write().begin(commit_user=uuid.uuid4().hex)
        table.new_write().abort(write_context, [])
        took.append(time.perf_counter() - started)
    return took


def seconds_until_a_successor_commits(servers: str, warehouse: str, *, lease_timeout: str) -> float:
    """Return the seconds from the SIGKILL of a writer in the middle of its commit to the next writer's commit."""
    table = new_table(servers, warehouse, {"lease.timeout": lease_timeout})
    table.append(rows_born(np.arange(BATCH_ROWS)))
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, warehouse, servers, table.name],
        cwd=_CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(_CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        if holder.stdout is None or holder.stdout.readline().strip() != "holds":
            message = "the writer to be killed did not come to hold its lease"
            raise RuntimeError(message)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        started = time.perf_counter()
        table.append(rows_born(np.arange(BATCH_ROWS)))
        return time.perf_counter() - started


def new_table(
    servers: str | None, warehouse: str, options: dict[str, str], store: Mapping[str, str] | None = None
) -> DynamicTable:
    """Create a table with one bucket and a unique name; without ``servers`` it has no log."""
    log = {"log.system": "none"} if servers is None else {}
    kafka = {} if servers is None else {"log.kafka.bootstrap.servers": servers}
    catalog = open_catalog(warehouse, {**kafka, **(store or {})})
    name = f"latency.t{uuid.uuid4().hex[:12]}"
    return catalog.create_table(name, COLUMNS, primary_key=["id"], options={"write-only": "true", **log, **options})
