"""Random histories of tables that two engines write, and a plain model of their expected content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from storage_lib.schema.types.row_kind import ROW_KIND_COLUMN, RowKind
from tests.support.paimon_core import PaimonCore
from tests.support.shared_table import Change, Row, SharedTable, arrow_of, folded, sorted_rows

_KINDS = {kind.symbol: kind for kind in RowKind}
ADD, DELETE = RowKind.INSERT, RowKind.DELETE
KEYS = 9


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Configuration of a merge engine: columns after the key ``k``, options, and a model of one key's row."""

    columns: Mapping[str, str]
    options: Mapping[str, str]
    deletes: bool = False
    producers: Sequence[str] = ("none", "input", "lookup", "full-compaction")
    takes_vectors: bool = True

    def row(self, versions: Sequence[Change]) -> Row | None:
        """Merge a key's changes, in order of arrival, into the resulting row."""
        merged: dict[str, Any] | None = None
        for kind, row in versions:
            given = dict(zip(self.columns, row[1:], strict=True))
            if kind is DELETE:
                merged = None
            elif merged is None:
                merged = given
            else:
                self._add(merged, given)
        return None if merged is None else (versions[0][1][0], *merged.values())

    def _function(self, name: str) -> str:
        return self.options.get(f"fields.{name}.aggregate-function", "")

    def _add(self, merged: dict[str, Any], given: dict[str, Any]) -> None:
        match self.options.get("merge-engine"):
            case None:
                merged.update(given)
            case "first-row":
                pass
            case "aggregation":
                for name in self.columns:
                    merged[name] = self._aggregated(name, merged[name], given[name])
            case "partial-update":
                self._update(merged, given)

    def _update(self, merged: dict[str, Any], given: dict[str, Any]) -> None:
        members = self.options.get("fields.g.sequence-group", "").split(",")
        grouped = {"g", *members} if members != [""] else set()
        for name in self.columns:
            if name not in grouped and given[name] is not None:
                merged[name] = given[name]
        if not grouped or given["g"] is None:
            return
        is_newer = merged["g"] is None or given["g"] >= merged["g"]
        for name in members:
            if self._function(name):
                # The Java core collects in order of arrival, regardless of the group's sequence.
                is_later = is_newer or self._function(name) == "collect"
                first, second = (merged[name], given[name]) if is_later else (given[name], merged[name])
                merged[name] = self._aggregated(name, first, second)
            elif is_newer:
                merged[name] = given[name]
        if is_newer:
            merged["g"] = given["g"]

    def _aggregated(self, name: str, old: Any, new: Any) -> Any:  # noqa: PLR0911  a table of functions
        function = self._function(name)
        if function == "last_value":
            return new
        if new is None:
            return old
        if old is None:
            return new
        match function:
            case "sum" | "collect":
                return old + new
            case "max":
                return max(old, new)
            case "listagg":
                return f"{old},{new}"
            case "last_non_null_value":
                return new
        raise AssertionError(function)


SUMS = {
    "merge-engine": "aggregation",
    "fields.a.aggregate-function": "sum",
    "fields.b.aggregate-function": "max",
    "fields.c.aggregate-function": "listagg",
    "fields.d.aggregate-function": "collect",
    "fields.g.aggregate-function": "last_value",
}
COLUMNS = {"g": "INT", "a": "BIGINT", "b": "INT", "c": "STRING", "d": "ARRAY<INT>"}
ENGINES: Mapping[str, Engine] = {
    "deduplicate": Engine(columns=COLUMNS, options={}, deletes=True),
    "first-row": Engine(
        columns=COLUMNS, options={"merge-engine": "first-row"}, producers=("none", "lookup"), takes_vectors=False
    ),
    "aggregation": Engine(columns=COLUMNS, options=SUMS),
    "aggregation, removing": Engine(
        columns=COLUMNS, options={**SUMS, "aggregation.remove-record-on-delete": "true"}, deletes=True
    ),
    "partial-update": Engine(columns=COLUMNS, options={"merge-engine": "partial-update"}),
    "partial-update, removing": Engine(
        columns=COLUMNS,
        options={"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        deletes=True,
    ),
    "sequence group": Engine(
        columns=COLUMNS, options={"merge-engine": "partial-update", "fields.g.sequence-group": "a,b"}
    ),
    "aggregated group": Engine(
        columns=COLUMNS,
        options={
            "merge-engine": "partial-update",
            "fields.g.sequence-group": "a,b,d",
            "fields.a.aggregate-function": "sum",
            "fields.b.aggregate-function": "max",
            "fields.d.aggregate-function": "collect",
        },
    ),
}


@dataclass
class Life:
    """History of one table. ``run`` compares after each step; ``told`` lists the steps done."""

    core: PaimonCore
    home: Path
    seed: int
    told: list[str] = field(default_factory=list)
    was_overwritten: bool = False

    def __post_init__(self) -> None:
        self.drawn = np.random.default_rng(self.seed)
        self.name = str(self.drawn.choice(list(ENGINES)))
        self.engine = ENGINES[self.name]
        self.producer = str(self.drawn.choice(list(self.engine.producers)))
        vectors = self.engine.takes_vectors and self.producer != "full-compaction" and self.drawn.random() < 0.4
        options = {
            **self.engine.options,
            "changelog-producer": self.producer,
            "num-sorted-run.compaction-trigger": str(int(self.drawn.integers(2, 6))),
            **({"deletion-vectors.enabled": "true"} if vectors else {}),
        }
        if self.drawn.random() < 0.3:
            options["compaction.size-ratio"] = "0"
        self.is_ours = bool(self.drawn.random() < 0.3)
        options |= self._more_options()
        new_table = SharedTable.made_by_us if self.is_ours else SharedTable.made_by_java
        self.table = new_table(self.core, self.home, {"k": "INT NOT NULL", **self.engine.columns}, options)
        self.told.append(f"seed {self.seed}: {self.name}, {options}, {new_table.__name__}")
        self.changes: list[Change] = []
        self.input: list[Change] = []

    def _more_options(self) -> dict[str, str]:
        return {}

    def run(self, steps: int = 9) -> None:
        """Run random steps by either engine, then a full compaction by one of them."""
        for step in range(steps):
            is_told = self._step(last=step == steps - 1)
            self._compare(is_told=is_told)
        self._compare_our_changes()

    def _step(self, *, last: bool) -> bool:
        """Run one step; return whether the changelog is complete afterwards."""
        what = "compact" if last else str(self.drawn.choice(["append"] * 9 + ["compact"] * 3 + ["overwrite"]))
        if what == "overwrite":
            return self._overwrite()
        return self._compact(last=last) if what == "compact" else self._append()

    def _compact(self, *, last: bool = False) -> bool:
        by_us = bool(self.drawn.random() < 0.5)
        full = bool(last or self.drawn.random() < 0.5) if by_us else True
        self.told.append(f"{'we' if by_us else 'java'} compact{' fully' if full else ''}")
        if by_us:
            self.table.ours().compact(full=full)
        else:
            self.table.compact_by_java()
        return full

    def _append(self) -> bool:
        by_us = bool(self.drawn.random() < 0.5)
        changes = self._drawn_changes(by_us=by_us)
        self.told.append(f"{'we' if by_us else 'java'} append {[(kind.symbol, *row) for kind, row in changes]}")
        (self.table.append_by_us if by_us else self.table.append_by_java)(changes)
        self.changes += changes
        self.input += changes
        return self.producer != "full-compaction" or by_us

    def _overwrite(self) -> bool:
        """Overwrite the whole table with this library, with change tracking: replaces the stream's content."""
        rows = {row[0]: (kind, row) for kind, row in self._drawn_changes(by_us=True) if kind is ADD}
        self.told.append(f"we overwrite {[row for _, row in rows.values()]}")
        table = self.table.ours()
        table.overwrite(arrow_of(table, list(rows.values())), partition={})
        self.changes = list(rows.values())
        # The model cannot distinguish replaced input from other input.
        self.was_overwritten = True
        return True

    def _drawn_changes(self, *, by_us: bool) -> list[Change]:
        held = self.expected()
        # The Java core loses the deletion of a record that is inserted again in the same commit.
        forgets = not by_us and "removing" in self.name
        gone: set[int] = set()
        changes: list[Change] = []
        low = int(self.drawn.integers(0, KEYS))
        for _ in range(int(self.drawn.integers(1, 7))):
            key = int((low + self.drawn.integers(0, 1 + KEYS // 2)) % KEYS)
            if self.engine.deletes and key in held and self.drawn.random() < 0.25:
                row = held.pop(key)
                # Where records are removed, the Java core takes the deletion's own values for part of the next record.
                changes.append((DELETE, (key, *(None for _ in row[1:])) if "removing" in self.name else row))
                gone.add(key)
                continue
            if forgets and key in gone:
                continue
            row = (key, *(self._value(*column) for column in self.engine.columns.items()))
            changes.append((ADD, row))
            held[key] = row
        return changes or self._drawn_changes(by_us=by_us)

    def _value(self, name: str, spelled: str) -> Any:
        # The Java core applies a group without a sequence to a single row, but ignores it when it merges the row.
        is_sequence = f"fields.{name}.sequence-group" in self.engine.options
        if not is_sequence and self.drawn.random() < 0.2:
            return None
        if spelled.startswith("ARRAY"):
            return self.drawn.integers(0, 100, int(self.drawn.integers(0, 3))).tolist()
        number = int(self.drawn.integers(0, 100))
        return f"v{number}" if spelled == "STRING" else number

    def expected(self) -> dict[int, Row]:
        """Return the model's rows by key."""
        by_key: dict[int, list[Change]] = {}
        for change in self.changes:
            by_key.setdefault(change[1][0], []).append(change)
        rows = {key: self.engine.row(versions) for key, versions in by_key.items()}
        return {key: row for key, row in rows.items() if row is not None}

    def _compare_our_changes(self) -> None:
        """Check that this library's incremental reads, which use data files, return the same changes."""
        expected = sorted_rows(self.expected().values())
        table = self.table.ours()
        for mode in ("every", "net"):
            read = table.changes(start_snapshot_id=0, mode=mode).read_all().to_pylist()
            changes = [(_KINDS[row.pop(ROW_KIND_COLUMN)], tuple(row.values())) for row in read]
            found = sorted_rows(folded(changes, strict=False).values())
            assert found == expected, "\n".join([f"our changes ({mode}) add up to other rows", *self.told])

    def _compare(self, *, is_told: bool) -> None:
        expected = sorted_rows(self.expected().values())
        history = "\n".join(self.told)
        assert self.table.rows_by_us() == expected, f"we read other rows\n{history}"
        assert self.table.rows_by_java() == expected, f"Java reads other rows\n{history}"
        if self.producer == "none" or not self.changes:
            return
        stream = self.table.stream_by_java()
        if self.producer == "input" and not self.was_overwritten:
            assert sorted_rows(stream) == sorted_rows(self.input), f"the stream has other changes\n{history}"
        if self.producer == "input" and self.name != "deduplicate":
            return
        found = sorted_rows(folded(stream, strict=self.producer != "input").values())
        if is_told:
            assert found == expected, f"the stream adds up to other rows\n{history}"
