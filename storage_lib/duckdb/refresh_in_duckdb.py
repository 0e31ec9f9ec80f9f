"""A refresh in DuckDB, in this process, because Spark would plan longer than it takes.

    changes of the sources, few rows ─▶ statements with Spark's values (``ExactDuckDb``) ─▶ rows with weights

Whatever DuckDB does not compute exactly as Spark does, or reads slowly, raises ``EngineRefusalError`` before anything
is written, and another engine computes the refresh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.duckdb.duckdb_session import DuckDbSession, duckdb_session
from storage_lib.duckdb.snapshot_rows import MERGED_BYTES_MAX, SnapshotRows, select_of_rows
from storage_lib.materialized.algebra import (
    RESULT,
    ExactDuckDb,
    Moment,
    NotExactError,
    ValueType,
    of_one_moment,
    read_type,
)
from storage_lib.materialized.algebra.in_duckdb.duckdb_text import grouped, identifier
from storage_lib.materialized.engine import EngineRefusalError
from storage_lib.materialized.sources.lake_source import LakeSource
from storage_lib.materialized.sources.own_source import OwnSource
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.schema.types.spark_names import spark_name

if TYPE_CHECKING:
    from storage_lib.materialized.algebra import Steps, Views
    from storage_lib.materialized.engine import RefreshRun
    from storage_lib.materialized.plan.refresh_plan import RefreshPlan
    from storage_lib.materialized.sources.source import Source, SourceDelta
    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.table.dynamic_table import DynamicTable

Types = Mapping[str, ValueType]


@dataclass(frozen=True, slots=True)
class DuckDbRefresh:
    """One refresh in one session of DuckDB. ``changed`` are the changes of the sources that have some.

    Its methods raise ``EngineRefusalError`` and ``NotExactError``, and the errors of reads.
    """

    session: DuckDbSession
    table: DynamicTable
    bound: BoundQuery
    plan: RefreshPlan
    changed: Mapping[str, pa.Table]
    types: Mapping[str, Types]

    @property
    def dialect(self) -> ExactDuckDb:
        """In which statements over the sources are written."""
        return ExactDuckDb(self.type_of)

    @property
    def views(self) -> Views:
        """The relations of statements, created when they are asked for."""
        return of_one_moment(cache(self._view), self.bound.sources.keys() - self.changed.keys())

    def type_of(self, name: str, column: str) -> ValueType:
        """Return the type of a column of a source, or of the materialized table (``RESULT``)."""
        return self.types[name][column.lower()]

    def change(self) -> pa.Table | None:
        """Return the net change of the answer, as the table's columns and ``_weight``; None if nothing can change."""
        self.check_types()
        steps = self.bound.compiled.delta(self.views, self.changed.keys(), dialect=self.dialect)
        select = None if steps is None else self.compute(steps)
        return None if select is None else self.net_rows(select)

    def whole(self) -> pa.Table:
        """Return the net difference between the whole answer and the table's rows, as ``change`` does."""
        self.check_types()
        compiled = self.bound.compiled
        answer = compiled.full(self.views, Moment.AFTER, dialect=self.dialect)
        select = f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({answer}) AS a"
        if self.plan.based_on:
            names = ", ".join(identifier(name) for name in compiled.columns)
            stored = self.views(RESULT, Moment.AFTER)
            select += f" UNION ALL SELECT {names}, CAST(-1 AS BIGINT) FROM {stored}"
        return self.net_rows(select)

    def compute(self, steps: Steps) -> str | None:
        """Compute the shared relations of a statement; return the SELECT of its rows, None if it has none."""
        return steps.run(lambda name, select: self.session.keep(name, select) > 0)

    def net_rows(self, select: str) -> pa.Table:
        """Sum the weights of equal rows, which have the table's columns; rows with weight 0 are omitted."""
        values = {name: self._value(name) for name in (field.name for field in self.table.schema.fields)}
        named = ", ".join(f"{value} AS {identifier(name)}" for name, value in values.items())
        rows = self.session.rows(
            f"SELECT {named}, CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT} FROM ({select}) AS r"
            f" GROUP BY {', '.join(values.values())} HAVING sum({WEIGHT}) <> 0"
        )
        # The writer says which NULL a column refuses.
        fields = [field.with_nullable(True) for field in self.table.arrow_schema]
        return rows.cast(pa.schema([*fields, pa.field(WEIGHT, pa.int64())]))

    def check_types(self) -> None:
        """Compare the answer's types with the table's, which are those that Spark gave it."""
        _check_answer(self.bound, self.types, self.dialect)

    def _value(self, name: str) -> str:
        """Return a column of the answer to group by."""
        column = f"r.{identifier(name)}"
        return grouped(column) if self.type_of(RESULT, name) == read_type("double") else column

    def _view(self, name: str, moment: Moment) -> str:
        if name == RESULT:
            return self.session.view(self._rows(self.table, RESULT).select(self.plan.based_on))
        source = self.bound.sources[name]
        wanted = needed_columns(self.bound.compiled, name, source)
        types = {each: self.type_of(name, each) for each in wanted}
        if moment is Moment.DELTA:
            return self.session.view(select_of_rows(self.session, self.changed[name], types))
        at = (self.plan.before if moment is Moment.BEFORE else self.plan.after)[name]
        if isinstance(source, OwnSource):
            return self.session.view(SnapshotRows(self.session, source.table, types).select(at))
        return self.session.view(self._rows_of_lake(source, types, at))

    def _rows(self, table: DynamicTable, name: str) -> SnapshotRows:
        types = {field.name: self.type_of(name, field.name) for field in table.schema.fields}
        return SnapshotRows(self.session, table, types)

    def _rows_of_lake(self, source: Source, types: Types, number: int) -> str:
        """Return a SELECT of the rows of a table of another format, which are read here if they are few."""
        if not isinstance(source, LakeSource):
            raise EngineRefusalError("Spark reads this source")
        size = source.size_bytes(number)
        self.session.add_size(size)
        if size > MERGED_BYTES_MAX:
            raise EngineRefusalError(f"the files of {source.history.name} are large")
        return select_of_rows(self.session, source.rows(list(types), number), types)


@contextmanager
def refresh_in_duckdb(
    run: RefreshRun, changed: Mapping[str, SourceDelta], *, refusal: str | None, size_max: int | None = None
) -> Iterator[DuckDbRefresh]:
    """Give the body a refresh that reads files of ``size_max`` bytes, or as the table's option says.

    ``refusal``: why another engine has to compute it, None without a reason. Raises ``EngineRefusalError`` if another
    engine has to, also for such an error of the body.
    """
    rows = {name: each.here for name, each in changed.items() if each.here is not None}
    if len(rows) < len(changed):
        raise EngineRefusalError("many rows have changed")
    allowed = run.table.options.in_process_size_max
    with _refusals():
        types = _known_types(run.table, run.bound, refusal)
        with duckdb_session(allowed if size_max is None else min(size_max, allowed)) as session:
            yield DuckDbRefresh(session, run.table, run.bound, run.plan, rows, types)


def why_not_duckdb(table: DynamicTable, bound: BoundQuery, refusal: str | None) -> str | None:
    """Return why DuckDB computes no refresh of a table; None if it computes the small ones. ``refusal`` as above."""
    try:
        with _refusals():
            types = _known_types(table, bound, refusal)
            dialect = ExactDuckDb(lambda name, column: types[name][column.lower()])
            _check_answer(bound, types, dialect)
            steps = bound.compiled.delta(lambda *_: "t", bound.compiled.sources, dialect=dialect)
            if steps is not None:
                _ = steps.text  # raises NotExactError for a part that DuckDB may compute in another way
            with duckdb_session(0):
                return None
    except EngineRefusalError as error:
        return str(error)


def _known_types(table: DynamicTable, bound: BoundQuery, refusal: str | None) -> dict[str, Types]:
    """Return the types of the columns that are read; raise if another engine may give other values."""
    if table.options.in_process_size_max == 0:
        raise EngineRefusalError("refresh.in-process-size-max is 0")
    if refusal is not None:
        raise EngineRefusalError(refusal)
    types = {
        each.name: _types(each.columns, needed_columns(bound.compiled, each.name, bound.sources[each.name]))
        for each in bound.described
    }
    named = [(field.name, spark_name(field.type)) for field in table.schema.fields]
    types[RESULT] = _types(named, [name for name, _ in named])
    return types


def _check_answer(bound: BoundQuery, types: Mapping[str, Types], dialect: ExactDuckDb) -> None:
    compiled = bound.compiled
    if compiled.tree is None:
        raise EngineRefusalError("the query is not incremental")
    found = dict(zip(map(str.lower, compiled.columns), dialect.types_of(compiled.tree), strict=True))
    if found != {name: kind.spark for name, kind in types[RESULT].items()}:
        raise EngineRefusalError("the types of the answer are not known exactly")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except NotExactError as error:
        raise EngineRefusalError(f"DuckDB may give other values than Spark for {error}") from error


def _types(columns: Sequence[tuple[str, str]], wanted: Sequence[str]) -> Types:
    return {name.lower(): read_type(kind) for name, kind in columns if name in wanted}
