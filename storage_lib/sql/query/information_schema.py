"""INFORMATION_SCHEMA (ISO/IEC 9075-11): what the catalog holds, as relations that a query reads.

Their rows are those of the moment at which the query is analysed. A database of that name hides the relations. All but
``schemata``, ``views`` and ``information_schema_catalog_name`` load the schema of each table of the catalog;
``columns`` also lets Spark analyse each view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.options.default_values import default_text
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.sql.definition.materialized_text import freshness_text
from storage_lib.sql.definition.virtual_columns import computed_columns, computed_comment
from storage_lib.sql.query.view_columns import described_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.catalog.views.view import View
    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.sql.text.query_tables import TableReference
    from storage_lib.table.dynamic_table import DynamicTable

    ViewFrame = Callable[[SessionState, View], DataFrame]
    _Row = tuple[str | int | None, ...]

INFORMATION_SCHEMA = "information_schema"

_OF_TABLE = ("table_catalog", "table_schema", "table_name")
_OF_KEY = ("constraint_catalog", "constraint_schema", "constraint_name", *_OF_TABLE)
_POSITIONS = ("ordinal_position", "partition_ordinal_position")


@dataclass(frozen=True, slots=True)
class _Relation:
    columns: tuple[str, ...]
    rows: Callable[[SessionState, ViewFrame], Iterator[_Row]]


def information_relation(state: SessionState, parts: Sequence[str]) -> str | None:
    """Return the relation ``[catalog.]information_schema.<relation>`` that a name means; None if it means none.

    Raises ``InvalidInputError`` with the nearest name for an unknown relation.
    """
    if len(parts) not in (2, 3) or parts[-2].lower() != INFORMATION_SCHEMA:
        return None
    if (len(parts) == 3 and parts[0] != state.catalog_name) or state.catalog.database_exists(parts[-2]):
        return None
    name = parts[-1].lower()
    if name not in _RELATIONS:
        message = f"{INFORMATION_SCHEMA} has no relation {parts[-1]!r}{did_you_mean(name, _RELATIONS)}"
        raise InvalidInputError(message)
    return name


def information_frame(
    state: SessionState, reference: TableReference, name: str, *, view_frame: ViewFrame, is_shape: bool
) -> DataFrame:
    """Return the rows of the relation ``name``, or with ``is_shape`` an empty data frame of its columns.

    ``view_frame`` returns the result of a view, of which only the columns are used; a view that Spark refuses, for
    example because its table was dropped, has none. Raises ``InvalidInputError`` if the query gives the relation a hint
    or AS OF.
    """
    if reference.hint or reference.as_of is not None:
        message = f"{reference} shows what the catalog holds now; leave hints and AS OF out"
        raise InvalidInputError(message)
    relation = _RELATIONS[name]
    rows = [] if is_shape else list(relation.rows(state, view_frame))
    arrays = [
        pa.array([row[place] for row in rows], pa.int32() if column in _POSITIONS else pa.string())
        for place, column in enumerate(relation.columns)
    ]
    types = ", ".join(f"{each} {'INT' if each in _POSITIONS else 'STRING'}" for each in relation.columns)
    return state.spark.createDataFrame(pa.Table.from_arrays(arrays, names=list(relation.columns)), types)


def _tables(state: SessionState) -> Iterator[DynamicTable]:
    """Load all tables of the catalog, without those that somebody drops meanwhile."""
    for name in state.catalog.list_tables():
        with suppress(NotFoundError):
            yield state.catalog.load_table(name)


def _views(state: SessionState) -> Iterator[View]:
    for name in state.catalog.views.names():
        view = state.catalog.views.find(name)
        if view is not None:
            yield view


def _table(state: SessionState, name: str) -> tuple[str, str, str]:
    database, _, table = name.partition(".")
    return state.catalog_name, database, table


def _catalog_name(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    yield (state.catalog_name,)


def _schemata(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    for name in state.catalog.list_databases():
        yield state.catalog_name, name


def _of_tables(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    for table in _tables(state):
        is_kept = table.definition is not None
        kind, insertable = ("MATERIALIZED TABLE", "NO") if is_kept else ("BASE TABLE", "YES")
        yield *_table(state, table.name), kind, insertable, table.schema.comment
    for view in _views(state):
        yield *_table(state, view.name), "VIEW", "NO", view.comment


def _of_columns(state: SessionState, view_frame: ViewFrame) -> Iterator[_Row]:
    for table in _tables(state):
        schema = table.schema
        partitions = {name: place for place, name in enumerate(schema.partition_keys, start=1)}
        for place, field in enumerate(schema.fields, start=1):
            yield (
                *_table(state, table.name),
                field.name,
                place,
                default_text(schema, field),
                _yes_or_no(field.type.nullable),
                str(field.type.with_nullable(nullable=True)),
                field.description,
                "NEVER",
                None,
                partitions.get(field.name),
            )
        for place, (name, expression) in enumerate(computed_columns(schema.options).items(), len(schema.fields) + 1):
            comment = computed_comment(schema.options, name)
            yield *_table(state, table.name), name, place, None, "YES", None, comment, "ALWAYS", expression, None
    for view in _views(state):
        columns: Sequence[tuple[str | None, ...]] = ()
        with suppress(InvalidInputError, NotFoundError):
            columns = described_columns(view, view_frame(state, view))
        for place, (column, type_, nullable, _, comment) in enumerate(columns, start=1):
            can_be_null = _yes_or_no(nullable == "true")
            yield *_table(state, view.name), column, place, None, can_be_null, type_, comment, "NEVER", None, None


def _of_views(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    for view in _views(state):
        yield *_table(state, view.name), view.query, "NONE", "NO", "NO"


def _of_materialized_tables(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    for table in _tables(state):
        kept = table.definition
        if kept is not None:
            freshness = None if kept.freshness is None else freshness_text(kept.freshness)
            names = _table(state, table.name)
            yield *names, kept.query, freshness, kept.refresh_mode.upper(), kept.status.upper()


def _constraints(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    for table in _tables(state):
        if table.schema.primary_keys:
            yield *_key(state, table), "PRIMARY KEY", "NO", "NO", "NO"


def _key_columns(state: SessionState, _: ViewFrame) -> Iterator[_Row]:
    for table in _tables(state):
        for place, name in enumerate(table.schema.primary_keys, start=1):
            yield *_key(state, table), name, place


def _key(state: SessionState, table: DynamicTable) -> tuple[str, ...]:
    catalog, database, name = _table(state, table.name)
    return catalog, database, f"{name}_pk", catalog, database, name


def _yes_or_no(value: object) -> str:
    return "YES" if value else "NO"


_RELATIONS: Mapping[str, _Relation] = {
    "columns": _Relation(
        (
            *_OF_TABLE,
            "column_name",
            "ordinal_position",
            "column_default",
            "is_nullable",
            "data_type",
            "comment",
            "is_generated",
            "generation_expression",
            "partition_ordinal_position",
        ),
        _of_columns,
    ),
    "information_schema_catalog_name": _Relation(("catalog_name",), _catalog_name),
    "key_column_usage": _Relation((*_OF_KEY, "column_name", "ordinal_position"), _key_columns),
    "materialized_tables": _Relation(
        (*_OF_TABLE, "definition", "freshness", "refresh_mode", "refresh_status"), _of_materialized_tables
    ),
    "schemata": _Relation(("catalog_name", "schema_name"), _schemata),
    "table_constraints": _Relation(
        (*_OF_KEY, "constraint_type", "is_deferrable", "initially_deferred", "enforced"), _constraints
    ),
    "tables": _Relation((*_OF_TABLE, "table_type", "is_insertable_into", "comment"), _of_tables),
    "views": _Relation(
        (*_OF_TABLE, "view_definition", "check_option", "is_updatable", "is_insertable_into"), _of_views
    ),
}
