"""The tables of Nexmark, and a process that writes events into them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.incremental_work.answer_check import AnswerCheck
from benchmarks.incremental_work.nexmark_events import COLUMNS, ROUND, events
from benchmarks.incremental_work.nexmark_freshness import SourceCommit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from storage_lib import DynamicTable
    from storage_lib.catalog.catalog import Catalog

BUCKETS = 2
_HOPS = 5
_SIDE_ROWS = 1000
_LOADED_SECONDS = 10


@dataclass(slots=True)
class EventWriter:
    """A running writer. Its commits are known when it has ended."""

    is_running: Callable[[], bool]
    commits: list[SourceCommit] = field(default_factory=list)


class NexmarkSources:
    """The tables of one query in a database of their own, which begin with ten seconds of events."""

    def __init__(self, catalog: Catalog, database: str, rate: int) -> None:
        self._catalog = catalog
        self._rate = rate
        self._rounds = rate * _LOADED_SECONDS // ROUND
        self.database = database
        self.tables = {each: self._table(each, columns) for each, columns in COLUMNS.items()} | self._side_tables()
        created = time.time() * 1000 - 1000 * np.arange(self._rounds * ROUND, 0, -1) / rate
        for each, rows in events(0, self._rounds, created.astype(np.int64)).items():
            self.tables[each].append(rows)

    @contextmanager
    def written(self, seconds: float) -> Iterator[EventWriter]:
        """Yield a process that writes events for that time. Its commits are set at the end of the ``with`` block.

        Raises ``RuntimeError`` if the writer fails.
        """
        words = (self._catalog.warehouse, self.database, str(self._rate), str(self._rounds))
        program = [sys.executable, "-m", "benchmarks.incremental_work.nexmark_writer", *words]
        with (
            TemporaryFile("w+") as lines,
            subprocess.Popen(program, stdin=subprocess.PIPE, stdout=lines, text=True) as process,
        ):
            writer = EventWriter(lambda: process.poll() is None)
            timer = threading.Timer(seconds, process.stdin.close)  # type: ignore[union-attr]
            timer.start()
            try:
                yield writer
            except BaseException:
                process.kill()
                raise
            finally:
                timer.cancel()
            if process.wait():
                message = f"the writer of {self.database} ended with code {process.returncode}"
                raise RuntimeError(message)
            lines.seek(0)
            writer.commits += [SourceCommit(*json.loads(line)) for line in lines]

    def check(self, name: str, text: str, found: pa.Table, positions: Mapping[str, int]) -> int:
        """Compare rows with DuckDB's answer over snapshots of the tables; return their number.

        Raises ``WrongRowsError``.
        """
        check = AnswerCheck()
        for source, snapshot_id in positions.items():
            check.set_rows(source, self.tables[source].to_arrow(snapshot_id=snapshot_id))
        return check.check(f"{name} at {self._rate} events/s", text, found)

    def _table(self, name: str, columns: pa.Schema, buckets: int = BUCKETS) -> DynamicTable:
        options = {"bucket": str(buckets), "log.system": "none"}
        [key, *_] = columns.names
        return self._catalog.create_table(f"{self.database}.{name}", columns, primary_key=[key], options=options)

    def _side_tables(self) -> dict[str, DynamicTable]:
        side = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.string())])
        hop = pa.schema([pa.field("hop", pa.int64(), nullable=False)])
        tables = {"side_input": self._table("side_input", side), "hop": self._table("hop", hop, buckets=1)}
        ids = np.arange(_SIDE_ROWS)
        tables["side_input"].append(pa.table({"id": ids, "value": np.char.add("value ", ids.astype(str))}, schema=side))
        tables["hop"].append(pa.table({"hop": np.arange(_HOPS)}, schema=hop))
        return tables
