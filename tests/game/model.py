"""Plain model of a table's rows: the versions of each key, merged anew for each answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.game.drawn_table import DrawnTable
from tests.game.functions import combined, first, retracted

Row: TypeAlias = dict[int, Any]
"""Values by the ids of the columns, which survive renames."""


@dataclass
class Model:
    """``columns`` are the ids of columns by their names now."""

    drawn: DrawnTable
    columns: dict[str, int]
    versions: dict[tuple[Any, ...], list[tuple[str, Row]]] = field(default_factory=dict)
    bag: Counter[tuple[tuple[int, Any], ...]] = field(default_factory=Counter)

    def copy(self) -> Model:
        """Return a model that can change alone; both share their rows, which are replaced and never changed."""
        versions = {key: list(all_) for key, all_ in self.versions.items()}
        return Model(self.drawn, dict(self.columns), versions, self.bag.copy())

    def restore(self, other: Model) -> None:
        """Take over the rows of another moment; the columns stay as they are."""
        past = other.copy()
        self.versions, self.bag = past.versions, past.bag

    def rows(self) -> list[Row]:
        if not self.drawn.key:
            return [dict(row) for row, count in self.bag.items() for _ in range(count)]
        merged = (self.merged(versions) for versions in self.versions.values())
        return [row for row in merged if row is not None]

    def key_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[self.columns[name]] for name in self.drawn.key)

    def stored(self, row: Row) -> Row | None:
        """Return the stored row with the key of ``row``."""
        versions = self.versions.get(self.key_of(row))
        return None if versions is None else self.merged(versions)

    def apply(self, kind: str, row: Row) -> None:
        if not self.drawn.key:
            counted = tuple(sorted(row.items()))
            self.bag[counted] += 1 if kind[0] == "+" and kind != "-U" else -1
            assert self.bag[counted] >= 0
            if not self.bag[counted]:
                del self.bag[counted]
            return
        if kind in ("-D", "-U") and self.drawn.ignores_deletes:
            return
        self.versions.setdefault(self.key_of(row), []).append((kind, row))

    def set_row(self, kind: str, row: Row) -> None:
        """Apply a change by a verb that either sets the row, whatever its sequence is, or refuses it."""
        self.apply(kind, row)
        if self.drawn.sequence is not None and not self.drawn.combines:
            self.versions[self.key_of(row)] = [(kind, row)]

    def apply_all(self, changes: Iterable[tuple[str, Row]]) -> None:
        for kind, row in changes:
            self.apply(kind, row)

    def replace(self, gone: list[Row], new: list[Row]) -> None:
        """Remove rows with all that is known of their keys, and insert others."""
        for row in gone:
            if self.drawn.key:
                self.versions.pop(self.key_of(row), None)
            else:
                self.apply("-D", row)
        for row in new:
            if self.drawn.key:
                # Nor does a deletion with a greater sequence hide the new row.
                self.versions.pop(self.key_of(row), None)
            self.apply("+I", row)

    def drop_partition(self, partition: str) -> None:
        place = self.columns["p"]
        if self.drawn.key:
            kept = {}
            for key, versions in self.versions.items():
                row = self.merged(versions) or versions[-1][1]
                if row[place] != partition:
                    kept[key] = versions
            self.versions = kept
        else:
            self.bag = Counter({row: count for row, count in self.bag.items() if dict(row)[place] != partition})

    def merged(self, versions: list[tuple[str, Row]]) -> Row | None:
        """Return the row that a key has after some versions."""
        if not versions:
            return None
        sequence = self.drawn.sequence
        if sequence is not None:
            place = self.columns[sequence]
            sign = -1 if self.drawn.is_descending else 1
            versions = sorted(versions, key=lambda version: sign * version[1][place])
        merged: Row | None = None
        partition: Any = None
        is_new = True
        for kind, row in versions:
            if kind in ("-D", "-U"):
                merged = self._retracted(merged, row) if merged is not None and self.drawn.retracts else None
            elif self.drawn.engine == "aggregation":
                merged = self._aggregated(merged, row)
            elif merged is None or self.drawn.engine == "deduplicate":
                merged = dict(row)
            elif self.drawn.engine == "partial-update":
                merged |= self._partially_updated(merged, row)
            if is_new and merged is not None:
                partition = row[self.columns["p"]]
            is_new = merged is None
        # A row that is merged into a stored one goes to the partition of that one.
        if merged is not None and self.drawn.combines and self.drawn.is_partitioned:
            merged[self.columns["p"]] = partition
        return merged

    def _retracted(self, old: Row, gone: Row) -> Row:
        kept = {self.columns[name] for name in self.drawn.kept_by_retractions}
        if self.drawn.group:
            gone = dict.fromkeys(old) | {self.columns["s"]: gone[self.columns["s"]]}
            return old | self._of_group(old, gone)
        functions = self._functions()
        return {
            column: value if column in kept else retracted(functions[column], value, gone.get(column))
            for column, value in old.items()
        }

    def _partially_updated(self, old: Row, new: Row) -> Row:
        """Return the values that a row changes."""
        of_group = {self.columns[name] for name in self.drawn.group}
        others = {column: value for column, value in new.items() if value is not None and column not in of_group}
        return others | (self._of_group(old, new) if of_group else {})

    def _of_group(self, old: Row, new: Row) -> Row:
        columns = [self.columns[name] for name in self.drawn.group]
        return {column: new[column] for column in columns} if new[columns[0]] >= old[columns[0]] else {}

    def _aggregated(self, old: Row | None, new: Row) -> Row:
        functions = self._functions()
        if old is None:
            return {column: first(functions[column], value) for column, value in new.items()}
        return {column: combined(functions[column], old.get(column), value) for column, value in new.items()}

    def _functions(self) -> defaultdict[int, str]:
        """Return the functions of columns by their ids; those of the key and the others keep the last value."""
        found = defaultdict(lambda: "last_value")
        for name, column in self.columns.items():
            found[column] = self.drawn.options.get(f"fields.{name}.aggregate-function", "last_value")
        return found
