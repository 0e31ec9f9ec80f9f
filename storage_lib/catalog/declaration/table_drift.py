"""Report how an existing table differs from its declaration, as lines that a person can act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.errors import NotFoundError
from storage_lib.schema.options.external_paths import with_root_path
from storage_lib.schema.options.known_options import refuse_unknown_options
from storage_lib.schema.options.table_options import TableOptions, canonical_key, masked
from storage_lib.schema.table_schema import BUCKET_KEY_OPTION, TableSchema, new_table_schema
from storage_lib.table.dynamic_table import DynamicTable

FIRST_SCHEMA_ID = 0


def table_drift(table: DynamicTable, declared: TableDescriptor) -> tuple[str, ...]:
    """Return one line per difference in columns, types, keys, partition columns, options and comment.

    Empty if the table is as declared. An undeclared option counts only if it was changed after the table was created;
    until then, its value is the catalog's default. Raises ``InvalidInputError`` for an invalid declaration.
    """
    options = _options(table, declared)
    return (
        *_shape(table, declared),
        *_declared_options(table, options),
        *_changed_options(table, options),
        *_comment(table.schema, declared),
    )


def declared_differences(table: DynamicTable, declared: TableDescriptor) -> tuple[str, ...]:
    """Return differences as ``table_drift`` does, but ignore undeclared options that ALTER TABLE changed."""
    options = _options(table, declared)
    return (*_shape(table, declared), *_declared_options(table, options), *_comment(table.schema, declared))


def _options(table: DynamicTable, declared: TableDescriptor) -> dict[str, str]:
    options = {canonical_key(key): str(value) for key, value in declared.options.items()}
    return with_root_path(options, table.name.partition("$")[0])


def _shape(table: DynamicTable, declared: TableDescriptor) -> Iterator[str]:
    # The bucket key may name undeclared columns; it is compared as an option.
    wanted = new_table_schema(
        declared.schema,
        primary_keys=declared.primary_key,
        partition_keys=declared.partition_by,
        options={key: value for key, value in table.schema.options.items() if key != BUCKET_KEY_OPTION},
        time_millis=0,
    )
    yield from _columns(table.schema, wanted)
    yield from _names("primary key", table.schema.primary_keys, wanted.primary_keys)
    yield from _names("partition columns", table.schema.partition_keys, wanted.partition_keys)


def _columns(is_: TableSchema, wanted: TableSchema) -> Iterator[str]:
    there = {field.name: field.type for field in is_.fields}
    declared = {field.name: field.type for field in wanted.fields}
    for name, type_ in declared.items():
        if name not in there:
            yield f"column {name}: not in the table, declared as {type_}"
        elif there[name] != type_:
            yield f"column {name}: {there[name]} in the table, declared as {type_}"
    for name, type_ in there.items():
        if name not in declared:
            yield f"column {name}: {type_} in the table, not declared"
    if list(there) != list(declared) and set(there) == set(declared):
        yield f"order of columns: {_listed(there)} in the table, declared as {_listed(declared)}"


def _names(role: str, is_: tuple[str, ...], wanted: tuple[str, ...]) -> Iterator[str]:
    if is_ != wanted:
        yield f"{role}: {_listed(is_)} in the table, declared as {_listed(wanted)}"


def _declared_options(table: DynamicTable, declared: dict[str, str]) -> Iterator[str]:
    refuse_unknown_options([key for key in declared if key not in table.schema.options], f"table {table.name}")
    there = dict(table.schema.options)
    shown_there = masked(there)
    parsed = TableOptions.parse(there)
    for key, value in sorted(declared.items()):
        # Another spelling of the same value, or the default given explicitly, is not a difference.
        if TableOptions.parse({**there, key: value}) != parsed:
            shown = masked({key: value})[key]
            yield f"option {key}: {shown_there.get(key, 'not set')} in the table, declared as {shown}"


def _changed_options(table: DynamicTable, declared: dict[str, str]) -> Iterator[str]:
    there = table.schema.options
    shown_there = masked(there)
    created = _options_at_creation(table)
    if created is None:
        return
    shown_created = masked(created)
    for key in sorted((there.keys() | created.keys()) - declared.keys()):
        if there.get(key) != created.get(key):
            yield (
                f"option {key}: {shown_there.get(key, 'not set')} in the table, not declared; "
                f"{shown_created.get(key, 'not set')} when it was created"
            )


def _options_at_creation(table: DynamicTable) -> dict[str, str] | None:
    try:
        return dict(table.refresh(schema_id=FIRST_SCHEMA_ID).schema.options)
    except NotFoundError:  # another engine's history may begin later
        return None


def _comment(is_: TableSchema, declared: TableDescriptor) -> Iterator[str]:
    if declared.comment is not None and declared.comment != is_.comment:
        yield f"comment: {is_.comment!r} in the table, declared as {declared.comment!r}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
