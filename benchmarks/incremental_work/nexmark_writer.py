"""Commits events of Nexmark at a constant rate until its input ends: a process of its own.

    python -m benchmarks.incremental_work.nexmark_writer WAREHOUSE DATABASE RATE FIRST_ROUND

Prints a line of JSON for each commit: table, snapshot, time of the commit, times of its first and its last event (all
epoch milliseconds), and number of rows.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import numpy as np

from benchmarks.incremental_work.nexmark_events import ROUND, events
from storage_lib import open_catalog

_INTERVAL_SECONDS = 0.5


def main(warehouse: str, database: str, rate: str, first: str) -> None:
    """Write until standard input ends."""
    catalog = open_catalog(warehouse)
    tables = {name: catalog.load_table(f"{database}.{name}") for name in ("person", "auction", "bid")}
    stopped = threading.Event()
    threading.Thread(target=_wait_for_end, args=(stopped,), daemon=True).start()
    step_millis = 1000 / int(rate)
    start, next_round = time.time() * 1000, int(first)
    written = 0
    while not stopped.wait(_INTERVAL_SECONDS):
        # Events that are due since the last commit, in whole rounds.
        rounds = int((time.time() * 1000 - start) / step_millis / ROUND) - written
        if rounds == 0:
            continue
        created = (start + np.arange(written * ROUND, (written + rounds) * ROUND) * step_millis).astype(np.int64)
        for name, rows in events(next_round, rounds, created).items():
            snapshot = tables[name].append(rows)
            if snapshot is None:
                raise RuntimeError(f"{name}: the events were not committed")
            line = [name, snapshot.id, snapshot.time_millis, int(created[0]), int(created[-1]), rows.num_rows]
            print(json.dumps(line), flush=True)
        written, next_round = written + rounds, next_round + rounds


def _wait_for_end(stopped: threading.Event) -> None:
    sys.stdin.read()
    stopped.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
