"""Changes of accumulators and of their answer, computed by DuckDB in this process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.duckdb.snapshot_rows import SnapshotRows
from storage_lib.materialized.accumulators.accumulated_query import NULL_KEYS, default_of
from storage_lib.materialized.accumulators.accumulated_state import LOOKED_UP_MAX, NamedState, looked_up, readable_state
from storage_lib.materialized.algebra import ROW_COUNT, ExactDuckDb, ValueType, read_type
from storage_lib.materialized.algebra.in_duckdb.duckdb_text import identifier, literal
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.duckdb.duckdb_session import DuckDbSession
    from storage_lib.duckdb.refresh_in_duckdb import DuckDbRefresh
    from storage_lib.materialized.accumulators.accumulated_query import AccumulatedQuery

_ADDED, _OLD, _NEW = "added_groups", "old_groups", "new_groups"


@dataclass(frozen=True, slots=True)
class AccumulatedChange:
    """``state``: stored rows of the groups that change, with row kinds; ``answer``: the net change, with weights."""

    state: pa.Table
    answer: pa.Table


def accumulated_change(here: DuckDbRefresh, query: AccumulatedQuery, state: NamedState) -> AccumulatedChange | None:
    """Add the changes of the sources to the groups that they touch; None if nothing is added.

    Raises ``EngineRefusalError`` and ``NotExactError``, and as ``SnapshotRows.select`` for a state that can't be read.
    """
    here.check_types()
    accumulators, session = query.accumulators, here.session
    steps = accumulators.change(here.views, here.changed.keys(), query.types, dialect=here.dialect)
    select = None if steps is None else here.compute(steps)
    columns = _Columns(query)
    if select is None or not session.keep(_ADDED, columns.stored(f"({select})")):
        return None
    added = session.rows(f"SELECT * FROM {_ADDED}")
    old = session.view(columns.restored(f"({_touched(session, columns, state, added)})"))
    change = session.view(columns.restored(_ADDED))
    dialect = ExactDuckDb(lambda _, column: columns.types[column])
    session.keep(_NEW, accumulators.sum_of_states([old, change], query.types, dialect=dialect))
    answer = here.net_rows(accumulators.answer_change(old, _NEW, query.types, dialect=dialect))
    return AccumulatedChange(session.rows(columns.with_kinds(_NEW, state.table.options.row_kind_field)), answer)


def _touched(session: DuckDbSession, columns: _Columns, state: NamedState, added: pa.Table) -> str:
    """Return a SELECT of the stored rows of the groups that change."""
    rows = SnapshotRows(session, state.table, columns.of_state)
    with readable_state():
        if added.num_rows <= LOOKED_UP_MAX:
            return rows.of(looked_up(columns.query, state, added))
        stored = rows.select(state.snapshot_id)
    same = " AND ".join(f"s.{identifier(key)} = a.{identifier(key)}" for key in columns.query.primary_key)
    return f"SELECT s.* FROM ({stored}) AS s SEMI JOIN {_ADDED} AS a ON {same}"


class _Columns:
    """The columns of a state, as they are computed and as they are stored."""

    def __init__(self, query: AccumulatedQuery) -> None:
        self.query = query
        self._keys = query.accumulators.key_columns
        self._defaults = {key: default_of(query.type_names[key]) for key in self._keys}
        self.of_state = {name: read_type(kind) for name, kind in query.type_names.items()}
        self.types: dict[str, ValueType] = {**self.of_state, WEIGHT: read_type("bigint")}

    def stored(self, relation: str) -> str:
        """Return rows of a state as they are stored, without NULL in keys."""
        return f"SELECT {', '.join(self._stored())} FROM {relation} AS r"

    def restored(self, relation: str) -> str:
        """Return stored rows with the NULLs of keys."""
        items = [
            f"CASE WHEN {NULL_KEYS} & {1 << place} = 0 THEN {identifier(key)} END AS {identifier(key)}"
            for place, key in enumerate(self._keys)
        ]
        return f"SELECT {', '.join([*items, *map(identifier, self._others)])} FROM {relation} AS r"

    def with_kinds(self, relation: str, kind_column: str) -> str:
        """Return rows of a state as they are stored, with their row kinds: groups without rows are deleted."""
        kind = literal(RowKind.INSERT.symbol)
        if not self.query.accumulators.groups.is_global:
            kind = f"CASE WHEN {ROW_COUNT} <> 0 THEN {kind} ELSE {literal(RowKind.DELETE.symbol)} END"
        return f"SELECT {', '.join(self._stored())}, {kind} AS {identifier(kind_column)} FROM {relation} AS r"

    @property
    def _others(self) -> Iterable[str]:
        return self.query.accumulators.columns[len(self._keys) :]

    def _stored(self) -> list[str]:
        names = map(identifier, self._keys)
        bits = [f"CASE WHEN {name} IS NULL THEN {1 << place} ELSE 0 END" for place, name in enumerate(names)]
        mask = f"CAST({' + '.join(bits) or '0'} AS BIGINT) AS {NULL_KEYS}"
        keys = []
        for key in self._keys:
            default = f"CAST({literal(self._defaults[key])} AS {self.types[key].duckdb})"
            keys.append(f"coalesce({identifier(key)}, {default}) AS {identifier(key)}")
        return [mask, *keys, *map(identifier, self._others)]
