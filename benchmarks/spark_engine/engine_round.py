"""One round: starts a session of each system, and runs each work in all of them, one after another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.spark_engine.engine_data import EngineData, Expected
from benchmarks.spark_engine.measurements import Measurements
from benchmarks.spark_engine.queries import LOOK_UP, QUERIES, same_rows
from benchmarks.spark_engine.session_process import SessionProcess, Settings, session_process

PLAIN = "plain parquet"
THROUGH_VIEW = "ours, read()"
"""Queries over a temporary view of ``storage_lib.spark.read(spark, table)``, in the session of ``ours``."""
_TABLE = "t"


class WrongAnswerError(Exception):
    """A system's answer differs from the expected one."""


@dataclass
class EngineRound:
    """Works are interleaved between the systems, so that a busy minute of the machine affects all of them."""

    systems: Sequence[str]
    data: EngineData
    expected: Expected
    measurements: Measurements
    scratch: Path
    settings: Settings
    repeats: int
    _sessions: dict[str, SessionProcess] = field(default_factory=dict)

    def run(self) -> None:
        """Run all works. Raises ``WrongAnswerError`` and ``WorkerFailedError``."""
        with ExitStack() as stack:
            for system in self.systems:
                say(f"starting {system}")
                session = stack.enter_context(session_process(system, self.scratch, self.settings))
                self._sessions[system] = session
                self.measurements.releases[system] = session.spark
                self.measurements.add(
                    "session start",
                    system,
                    seconds=session.started_seconds,
                    python_bytes=0,
                    peak_bytes=session.start_peak_bytes,
                )
            # The first load of a session compiles its code; the second is the load of a warm session.
            self._write("load, cold", "first", "load", self.data.load)
            self._write("load, warm", _TABLE, "load", self.data.load)
            for index in range(self.data.upserts):
                self._upsert(index)
            if PLAIN in self._sessions:
                # It has no upsert: the same final rows, for its answers and as the limit of a scan.
                self._sessions[PLAIN].do(do="upsert", table=_TABLE, rows=self.data.final)
            self._query("uncompacted", range(self.repeats))
            self._compact()
            self._query("compacted", range(self.repeats, 2 * self.repeats))

    def _write(self, work: str, table: str, do: str, rows: str) -> None:
        for system, session in self._sessions.items():
            session.do(do="create", table=table)
            self._measured(work, system, do=do, table=table, rows=rows)

    def _upsert(self, index: int) -> None:
        for system in self._sessions:
            if system != PLAIN:
                self._measured("upsert", system, do="upsert", table=_TABLE, rows=self.data.upsert(index))

    def _compact(self) -> None:
        for system in self._sessions:
            if system != PLAIN:
                self._measured("compaction", system, do="compact", table=_TABLE)

    def _query(self, state: str, repeats: range) -> None:
        for repeat in repeats:
            for name, text in QUERIES.items():
                self._ask(f"{name}, {state}", text, self.expected.answers[name])
            key, row = self.expected.looked_up[repeat % len(self.expected.looked_up)]
            self._ask(f"look-up, {state}", LOOK_UP.format(key=key), row)

    def _ask(self, work: str, text: str, right: list[list[Any]]) -> None:
        askers = [(system, system, False) for system in self._sessions]
        if "ours" in self._sessions:
            askers.insert(1, ("ours", THROUGH_VIEW, True))
        for session, label, through_view in askers:
            rows = self._measured(
                work, session, label=label, do="query", table=_TABLE, text=text, through_view=through_view
            )
            if not same_rows(rows, right):
                message = f"{label}: {work} answered {rows}, not {right}"
                raise WrongAnswerError(message)

    def _measured(self, work: str, system: str, *, label: str = "", **order: Any) -> list[list[Any]]:
        answer = self._sessions[system].do(**order)
        self.measurements.add(
            work,
            label or system,
            seconds=answer["seconds"],
            python_bytes=answer["python_bytes"],
            peak_bytes=answer["peak_bytes"],
        )
        say(f"{answer['seconds']:8.3f} s  {work}: {label or system}")
        rows: list[list[Any]] = answer["rows"]
        return rows


def say(words: str) -> None:
    """Print progress to standard error, apart from the table."""
    print(words, file=sys.stderr, flush=True)
