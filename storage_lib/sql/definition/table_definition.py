"""The table descriptor of a CREATE TABLE statement, combined from its text, a LIKE table and a query's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.errors import InvalidInputError
from storage_lib.schema.evolution.schema_changes import type_of
from storage_lib.schema.options.external_paths import PATHS_OPTION
from storage_lib.schema.options.materialized_table import PREFIX as MATERIALIZED_PREFIX
from storage_lib.schema.options.metadata_options import column_of_key, metadata_key
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_precedence import merged_options
from storage_lib.schema.options.table_options import OWN_PREFIX, canonical_key
from storage_lib.sql.definition.virtual_columns import is_virtual, options_of_virtual_columns
from storage_lib.sql.state.definition_options import refuse_definition_options
from storage_lib.sql.statements.table_statements import CreateTable

if TYPE_CHECKING:
    from storage_lib.schema.types.data_types import DataType
    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.table.dynamic_table import DynamicTable

_NOT_COPIED = ("log.kafka.topic",)
_FEATURES = ("OPTIONS", "CONSTRAINTS", "PARTITIONS", "GENERATED", "METADATA", "WATERMARKS")


def descriptor_of(state: SessionState, statement: CreateTable, *, of_query: pa.Schema | None = None) -> TableDescriptor:
    """Return the descriptor of the statement's table; the session's options are defaults for missing ones.

    ``of_query`` are the columns of CREATE TABLE AS SELECT. Raises ``InvalidInputError`` naming column and remedy.
    """
    like = None if statement.like is None else state.load(statement.like.source)
    return _described(statement, like, state.settings.table_options, of_query)


def plain_descriptor_of(statement: CreateTable) -> TableDescriptor:
    """Return the descriptor of a statement without LIKE and AS SELECT, and without a session's options."""
    return _described(statement, None, {}, None)


def _described(
    statement: CreateTable, like: DynamicTable | None, session_options: Mapping[str, str], of_query: pa.Schema | None
) -> TableDescriptor:
    included = _included(statement)
    columns = [] if like is None else [(field.name, field.type) for field in like.schema.fields]
    columns += _declared_columns(statement)
    if of_query is not None:
        columns += [(field.name, _type_of_query(statement, field)) for field in of_query]
    keys = statement.primary_key
    partition_by = statement.partition_by
    declared: dict[str, str] = {}
    if like is not None:
        keys = keys or (like.schema.primary_keys if "CONSTRAINTS" in included else ())
        partition_by = partition_by or (like.schema.partition_keys if "PARTITIONS" in included else ())
        declared |= _options_like(like, included)
    declared |= _declared_options(statement)
    options = merged_options(table=declared, session=session_options)
    options |= options_of_virtual_columns(statement.computed, statement.watermarks)
    options |= {metadata_key(each.name): each.metadata for each in statement.columns if each.metadata is not None}
    names = [name for name, _ in columns]
    _check_names(statement, names)
    typed = [(name, of.not_null() if name in keys else of) for name, of in columns]
    _check_keys(statement, names, keys, partition_by)
    return TableDescriptor(
        schema=tuple(typed),
        primary_key=tuple(keys),
        partition_by=tuple(partition_by),
        options=options,
        comment=statement.comment if statement.comment is not None or like is None else like.schema.comment,
        column_comments=_column_comments(statement, like),
    )


def _type_of_query(statement: CreateTable, field: pa.Field) -> DataType:
    if pa.types.is_null(field.type):
        message = (
            f"table {statement.table}: column {field.name!r} is NULL in every row, which tells no type; "
            f"write CAST(NULL AS STRING) AS {field.name}, for example"
        )
        raise InvalidInputError(message)
    try:
        return type_of(field.type)
    except InvalidInputError as error:
        message = f"table {statement.table}: column {field.name!r}: {error}"
        raise InvalidInputError(message) from error


def _declared_columns(statement: CreateTable) -> list[tuple[str, DataType]]:
    columns = []
    for each in statement.columns:
        try:
            of = type_of(each.type)
        except InvalidInputError as error:
            message = f"table {statement.table}: column {each.name!r}: {error}"
            raise InvalidInputError(message) from error
        columns.append((each.name, of if each.nullable else of.not_null()))
    return columns


def _included(statement: CreateTable) -> frozenset[str]:
    """Return the features that LIKE copies: all except the excluded ones."""
    included = set(_FEATURES)
    for action, feature in () if statement.like is None else statement.like.features:
        concerned = set(_FEATURES) if feature == "ALL" else {feature}
        included = included - concerned if action == "EXCLUDING" else included | concerned
    return frozenset(included)


def _options_like(like: DynamicTable, included: frozenset[str]) -> dict[str, str]:
    """Return the included options that another table may share: not the identity, the topic or external paths."""
    found = {}
    for key, value in like.schema.options.items():
        if key.startswith((OWN_PREFIX, PATHS_OPTION, MATERIALIZED_PREFIX)) or key in _NOT_COPIED:
            continue
        if _feature_of(key) in included:
            found[key] = value
    return found


def _feature_of(key: str) -> str:
    if key.startswith("watermark."):
        return "WATERMARKS"
    if column_of_key(key) is not None:
        return "METADATA"
    return "GENERATED" if is_virtual(key) else "OPTIONS"


def _check_names(statement: CreateTable, names: Sequence[str]) -> None:
    all_names = [*names, *(each.name for each in statement.computed)]
    for name in all_names:
        if [each.lower() for each in all_names].count(name.lower()) > 1:
            message = f"table {statement.table}: column {name!r} is declared twice; names differ by more than case"
            raise InvalidInputError(message)
    if not names:
        message = f"table {statement.table} has no columns; write CREATE TABLE {statement.table} (id BIGINT, ...)"
        raise InvalidInputError(message)
    for watermark in statement.watermarks:
        if watermark.column not in all_names:
            near = did_you_mean(watermark.column, all_names)
            message = f"table {statement.table}: WATERMARK FOR {watermark.column}: unknown column{near}"
            raise InvalidInputError(message)
    if len(statement.watermarks) > 1:
        message = f"table {statement.table} has two watermarks; a table has one, for one column"
        raise InvalidInputError(message)


def _check_keys(statement: CreateTable, names: Sequence[str], keys: Sequence[str], partition_by: Sequence[str]) -> None:
    for role, columns in (("PRIMARY KEY", keys), ("PARTITIONED BY", partition_by)):
        for column in columns:
            if column not in names:
                near = did_you_mean(column, names)
                message = f"table {statement.table}: {role} ({', '.join(columns)}): unknown column {column!r}{near}"
                raise InvalidInputError(message)


def _column_comments(statement: CreateTable, like: DynamicTable | None) -> dict[str, str]:
    """Return column -> comment, for the columns that have one."""
    copied = {} if like is None else {each.name: each.description for each in like.schema.fields}
    declared = {each.name: each.comment for each in statement.columns}
    return {name: comment for name, comment in (copied | declared).items() if comment is not None}


def _declared_options(statement: CreateTable) -> dict[str, str]:
    refuse_definition_options(f"table {statement.table}", statement.options)
    found: dict[str, str] = {}
    for key, value in statement.options.items():
        canonical = canonical_key(key)
        if canonical in found:
            message = f"table {statement.table}: option {canonical} is given twice, also as {key}; leave one out"
            raise InvalidInputError(message)
        found[canonical] = value
    return found
