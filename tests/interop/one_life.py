"""Runs one table's history, step by step, and records what every engine did and read."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from storage_lib.errors import StorageError
from storage_lib.schema.types.row_kind import RowKind
from tests.interop.engines import TAG, Engine, FlinkSql, Place, Rows
from tests.interop.lives import Actor, Step
from tests.interop.table_cases import TableCase
from tests.support.line_servant import RefusedError

DAYS = ("2024-05-14", "1969-07-20")
SAME = "same rows"
LACKS = "lacks rows"
DIFFERS = "has other rows"
REFUSES = "refuses"
DONE = "done"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of an operation: ``does`` is "write" for the step, "read" after it; ``said`` is empty on success."""

    step: Step
    engine: Actor
    does: str
    result: str
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Look:
    """Read options for one point of a table's history, and the expected rows."""

    step: Step
    options: Mapping[str, str]
    expected: list[str]


@dataclass
class Life:
    """History of one table; ``rows`` are the last written ones, by day and number, before any merge.

    Flink reads later, many snapshots by one query, before any of them expires: a separate job for each read would
    take several times as long as everything else.
    """

    place: Place
    case: TableCase
    engines: Mapping[Actor, Engine]
    rows: dict[tuple[str, int], tuple[Any, ...]] = field(default_factory=dict)
    tagged: Rows = ()
    numbers: int = 0
    turn: int = 0
    looks: list[Look] = field(default_factory=list)

    def live(self, steps: tuple[Step, ...]) -> Iterator[Outcome]:
        """Yield every outcome, in order."""
        for step in steps:
            self.turn += 1
            if step.verb == "expire":
                yield from self._look_later()
            if step.verb == "read tag":
                yield from self._look(step, self.tagged, {"scan.tag-name": TAG})
                continue
            try:
                self._do(step)
                if step.verb == "tag":
                    self.tagged = self.engines["ours"].read(self.place, {})
                yield Outcome(step=step, engine=step.actor, does="write", result=DONE)
            except (RefusedError, StorageError) as error:
                yield Outcome(step=step, engine=step.actor, does="write", result=REFUSES, said=str(error))
            yield from self._look(step, self.engines["ours"].read(self.place, {}), {})
        yield from self._look_later()

    def _look(self, step: Step, ours: Rows, options: Mapping[str, str]) -> Iterator[Outcome]:
        expected = comparable(ours)
        for name, engine in self.engines.items():
            if isinstance(engine, FlinkSql) or (name == "ours" and not options):
                continue
            try:
                found = comparable(engine.read(self.place, options))
            except RefusedError as error:
                yield Outcome(step=step, engine=name, does="read", result=REFUSES, said=str(error))
                continue
            result, said = difference(found, expected)
            yield Outcome(step=step, engine=name, does="read", result=result, said=said)
        newest = self.place.ours().context.file_store.snapshots.latest_id()
        at = {} if newest is None else {"scan.snapshot-id": str(newest)}
        self.looks.append(Look(step=step, options=options or at, expected=expected))
        if newest is None:
            yield from self._look_later()

    def _look_later(self) -> Iterator[Outcome]:
        looks, self.looks = self.looks, []
        flinks = {name: engine for name, engine in self.engines.items() if isinstance(engine, FlinkSql)}
        if not looks or not flinks:
            return
        # Read the newest snapshot without any option, as most readers do.
        options = [look.options for look in looks[:-1]] + [
            {key: text for key, text in looks[-1].options.items() if key != "scan.snapshot-id"}
        ]
        with ThreadPoolExecutor(len(flinks)) as each_alone:
            found = each_alone.map(lambda engine: engine.read_each(self.place, options), flinks.values())
        for name, of_looks in zip(flinks, found, strict=True):
            for look, rows in zip(looks, of_looks, strict=True):
                if isinstance(rows, RefusedError):
                    yield Outcome(step=look.step, engine=name, does="read", result=REFUSES, said=str(rows))
                else:
                    result, said = difference(comparable(rows), look.expected)
                    yield Outcome(step=look.step, engine=name, does="read", result=result, said=said)

    def _do(self, step: Step) -> None:  # noqa: C901  a table of verbs
        engine = self.engines[step.actor]
        match step.verb:
            case "create":
                engine.create(self.place, self.case)
            case "append":
                numbers = range(self.numbers, self.numbers + 6)
                self.numbers += 6
                self._write(engine, [self.case.row(DAYS[number % 2], number, self.turn) for number in numbers])
            case "update":
                of_some = [key for key in sorted(self.rows) if (key[1] + self.turn) % 3]
                self._write(engine, [self.case.row(*key, self.turn) for key in of_some])
            case "delete":
                gone = [key for key in sorted(self.rows) if key[1] % 3 == 1]
                engine.write(self.place, [self.rows[key] for key in gone], [RowKind.DELETE] * len(gone))
                for key in gone:
                    del self.rows[key]
            case "overwrite partition":
                rows = [self.case.row(DAYS[0], number, self.turn) for number in (0, self.numbers)]
                self.numbers += 2
                engine.overwrite(self.place, rows, DAYS[0])
                self._forget(DAYS[0])
                self.rows |= {(row[0], row[1]): row for row in rows}
            case "drop partition":
                engine.drop(self.place, DAYS[1])
                self._forget(DAYS[1])
            case "compact" | "compact what is due":
                engine.compact(self.place, full=step.verb == "compact")
            case "expire":
                engine.expire(self.place)
            case "tag":
                engine.tag(self.place)

    def _write(self, engine: Engine, rows: list[tuple[Any, ...]]) -> None:
        engine.write(self.place, rows, [RowKind.INSERT] * len(rows))
        self.rows |= {(row[0], row[1]): row for row in rows}

    def _forget(self, day: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key[0] != day}


def comparable(rows: Rows) -> list[str]:
    """Normalise rows for comparison: timestamps in UTC, map entries in order."""
    return sorted(repr(tuple(_normal(value) for value in row)) for row in rows)


def _normal(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, list):
        inner = [_normal(each) for each in value]
        return sorted(inner, key=repr) if inner and isinstance(inner[0], tuple) else inner
    if isinstance(value, tuple):
        return tuple(_normal(each) for each in value)
    if isinstance(value, dict):
        return {key: _normal(each) for key, each in value.items()}
    return value


def difference(found: list[str], expected: list[str]) -> tuple[str, str]:
    """Return a summary of the difference, and some of the missing and unexpected rows."""
    missing = list((Counter(expected) - Counter(found)).elements())
    more = list((Counter(found) - Counter(expected)).elements())
    if not missing and not more:
        return SAME, ""
    said = f"lacks {len(missing)} rows {missing[:2]}, has {len(more)} more {more[:2]}"
    return DIFFERS if more else LACKS, said
