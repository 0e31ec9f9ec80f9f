"""The source of a case as a real table, and a model in plain Python of its expected content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.schema.types.type_spelling import parse_type
from tests.differential.case import (
    DETAILS_COLUMNS,
    DIMENSION_COLUMNS,
    Append,
    Case,
    Change,
    Compact,
    LogMode,
    Overwrite,
    Row,
    Source,
    Value,
)

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

Bag = Counter[Row]
_TAKE_AWAY = ("-U", "-D")


class SourceModel:
    """Expected content of a source after the changes so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._keyed: dict[Row, Row] = {}
        self._bag: Bag = Counter()

    def rows(self) -> Bag:
        return Counter(self._keyed.values()) if self._source.key else +self._bag

    def complete(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield the changes in the form that the table requires, and apply them to the model.

        A table without a key receives no removals of missing rows. A table whose log takes old rows from its input
        receives them.
        """
        for kind, row in changes:
            if not self._source.key:
                if kind in _TAKE_AWAY and not self._bag[row]:
                    continue
                self._bag[row] += -1 if kind in _TAKE_AWAY else 1
                yield kind, row
                continue
            key = tuple(row[place] for place in self._source.key_places)
            old = self._keyed.pop(key, None)
            if kind not in _TAKE_AWAY:
                self._keyed[key] = row
            if self._source.log != "all-input":
                yield kind, row
            elif kind in _TAKE_AWAY:
                if old is not None:
                    yield "-D", old
            elif old is None:
                yield "+I", row
            else:
                yield "-U", old
                yield "+U", row

    def overwrite(self, step: Overwrite) -> None:
        source = self._source
        place = source.names.index(source.partition) if source.partition and step.partition is not None else None
        kept = {key: row for key, row in self._keyed.items() if place is not None and row[place] != step.partition}
        fresh = {tuple(row[each] for each in source.key_places): row for row in step.rows}
        self._keyed = kept | fresh


class PlayedSource:
    """Applies steps to the table and to the model."""

    def __init__(self, table: DynamicTable, dimension: DynamicTable, source: Source) -> None:
        self.table = table
        self._dimension = dimension
        self.model = SourceModel(source)
        self._source = source

    def rows(self) -> Bag:
        """Return the rows that a batch query would read; with an eventual log, after tiering."""
        if self.table.new_write().is_log_first:
            return self.model.rows()
        return bag_of(self.table.to_arrow(), self._source.names)

    def play(self, step: Append | Overwrite | Compact) -> None:
        source = self._source
        if isinstance(step, Compact):
            if source.is_eventual:
                self.table.maintenance.tier_log()
            self.table.compact(full=step.full)
        elif isinstance(step, Overwrite):
            self.model.overwrite(step)
            scope = {} if step.partition is None else {str(source.partition): step.partition}
            self.table.overwrite(arrow_rows(source.columns, step.rows), partition=scope, change_tracking=True)
        else:
            changes = list(self.model.complete(step.changes))
            kinds = None if source.is_append_only else [kind for kind, _ in changes]
            self.table.append(arrow_rows(source.columns, [row for _, row in changes], kinds))

    def move_dimension(self, rows: Sequence[Row]) -> None:
        """Replace the dimension's rows."""
        self._dimension.overwrite(arrow_rows(DIMENSION_COLUMNS, rows), partition={})


def arrow_rows(columns: Sequence[tuple[str, str]], rows: Sequence[Row], kinds: Sequence[str] | None = None) -> pa.Table:
    """Convert rows to an Arrow table with this library's column types."""
    arrays: dict[str, pa.Array] = {}
    for place, (name, kind) in enumerate(columns):
        arrays[name] = pa.array([row[place] for row in rows], _arrow_type(kind))
    if kinds is not None:
        arrays["_row_kind"] = pa.array(kinds, pa.string())
    return pa.table(arrays)


@cache
def _arrow_type(kind: str) -> pa.DataType:
    return parse_type(kind).arrow


def log_options(mode: LogMode) -> dict[str, str]:
    """Return the options of a table with such a log."""
    if mode == "none":
        return {"log.system": "none"}
    options = {"log.system": "kafka"}
    if mode.startswith("all-"):
        options |= {"log.changelog-mode": "all", "write.produce-update-before": mode.removeprefix("all-")}
    return options


def create_tables(catalog: Catalog, case: Case, database: str, *, options: dict[str, str]) -> PlayedSource:
    """Create the source, and dimension and details with their rows."""
    source = case.source
    own = {"bucket": str(source.buckets)} | log_options(source.log)
    if source.is_eventual:
        own["log.consistency"] = "eventual"
    if source.is_append_only:
        own = {"write-mode": "append-only"} | log_options(source.log)
    table = catalog.create_table(
        f"{database}.src",
        _nullable(source.columns, source.primary_key),
        primary_key=source.primary_key,
        partition_by=[source.partition] if source.partition else [],
        options=own | options,
    )
    others: list[DynamicTable] = []
    for name, columns, key, rows in (
        ("dim", DIMENSION_COLUMNS, ["cat"], case.dimension),
        ("details", DETAILS_COLUMNS, ["cat", "tag"], case.details),
    ):
        made = catalog.create_table(
            f"{database}.{name}", _nullable(columns, key), primary_key=key, options={"log.system": "none"}
        )
        if rows:
            made.append(arrow_rows(columns, rows))
        others.append(made)
    return PlayedSource(table, others[0], source)


def create_sink(catalog: Catalog, case: Case, database: str, *, options: dict[str, str]) -> DynamicTable:
    """Create the sink of a case."""
    sink = case.sink
    own = {"bucket": str(sink.buckets), "log.consistency": sink.consistency} | log_options(sink.log)
    if sink.is_append_only:
        own = {"write-mode": "append-only"} | log_options(sink.log)
    return catalog.create_table(
        f"{database}.sink",
        _nullable([(item.name, item.type) for item in case.query.branches[0].items], sink.primary_key),
        primary_key=sink.primary_key,
        partition_by=[sink.partition] if sink.partition else [],
        options=own | options,
    )


def bag_of(rows: pa.Table, names: Sequence[str]) -> Bag:
    """Count the rows of an Arrow table as tuples."""
    columns: list[list[Value]] = [rows[name].to_pylist() for name in names]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def _nullable(columns: Sequence[tuple[str, str]], key: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(name, _arrow_type(kind), nullable=name not in key) for name, kind in columns])
