"""Tables whose rows an Iceberg reader can't be shown exactly: CREATE and ALTER refuse a view of them, with advice.

A reader of Iceberg sees rows of files, or not; it merges and counts nothing. So the current row of a key has to be in
a file as it is, at least after a compaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage_lib.errors import InvalidInputError
from storage_lib.iceberg.encode.iceberg_schema import iceberg_schema, primitive_type
from storage_lib.iceberg.encode.partition_record import avro_name
from storage_lib.iceberg.publish.view_placement import view_root
from storage_lib.iceberg.register.view_choice import ViewChoice
from storage_lib.schema.options.table_options import UUID_OPTION, IcebergStorage, TableOptions
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import RowType, children_of, is_nested

OPTION = "metadata.iceberg.storage"
VERSION_OPTION = "metadata.iceberg.format-version"
_PARQUET = "parquet"
_INTEGERS = ("int", "long")
_FLOATS = ("float", "double")
_FLOATING = (TypeRoot.FLOAT, TypeRoot.DOUBLE)


def view_choice(table: str, schema: TableSchema, location: str) -> ViewChoice | None:
    """Return which view a table of this library has; None if it has none, or one that can't be right.

    Only the table's own options count, and not those of a connection. Tables of other engines have no view of ours,
    whatever their options say: they write metadata of their own.
    """
    if OPTION not in schema.options or UUID_OPTION not in schema.options:
        return None
    choice = ViewChoice.of(table, schema)
    if choice.storage is IcebergStorage.DISABLED:
        return None
    try:
        view_root(choice.storage, location)
    except InvalidInputError:
        return None
    return choice if _problem(schema, TableOptions.parse(schema.options)) is None else None


def refuse_view(
    table: str, schema: TableSchema, *, location: str, earlier: Sequence[TableSchema] = (), before: str | None = None
) -> None:
    """Raise ``InvalidInputError`` if the schema asks for a view that can't be exact; ``earlier`` are older versions.

    ``before`` is the option's former value: that of another engine may stay as it is.
    """
    options = TableOptions.parse(schema.options)
    storage = options.iceberg_storage
    if storage is IcebergStorage.DISABLED:
        if options.delta_enabled:
            message = (
                f"table {table}: option metadata.delta.enabled needs an Iceberg view, which it follows; set {OPTION}"
            )
            raise InvalidInputError(message)
        return
    if not isinstance(storage, IcebergStorage):
        if storage == before:
            return
        there = ", ".join(IcebergStorage)
        message = f"table {table}: option {OPTION}={storage} is not supported by this version; use one of {there}"
        raise InvalidInputError(message)
    if UUID_OPTION not in schema.options and before == storage:
        return
    problem = _problem(schema, options) or _type_problem(schema, earlier)
    if earlier and UUID_OPTION not in schema.options:
        problem = (
            "another engine created this table, and writes Iceberg metadata of its own; create a table here, and copy "
            "the rows into it"
        )
    if problem is not None:
        message = f"table {table}: option {OPTION}={storage}: {problem}"
        raise InvalidInputError(message)
    view_root(storage, location)


def _problem(schema: TableSchema, options: TableOptions) -> str | None:
    if schema.counts_values:
        return (
            "a table without primary key counts equal rows, which an Iceberg reader can't; declare a primary key, or "
            "write-mode=append-only"
        )
    if options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read:
        return "deletion-vectors.merge-on-read=false leaves rows out until they are compacted; set it to true"
    formats = {options.file_format, *(options.file_format_per_level or {}).values()}
    if formats != {_PARQUET}:
        return f"its readers need Parquet files; set file.format={_PARQUET}, and leave file.format.per.level out"
    return _problem_of_columns(schema)


def _problem_of_columns(schema: TableSchema) -> str | None:
    floating = [each.name for each in schema.partition_fields if each.type.root in _FLOATING]
    if schema.primary_keys and floating:
        return (
            f"PyIceberg does not find the hidden rows of a partition NaN, so no view partitions by {floating[0]!r}; "
            "partition by another type"
        )
    names = [each.name for each in schema.fields]
    ambiguous = [name for name in names if any(name.startswith(f"{other}.") for other in names)]
    if ambiguous:
        return f"readers of Iceberg take column {ambiguous[0]!r} for a part of another one; rename it"
    spelled = {avro_name(name): name for name in schema.partition_keys}
    hidden = [name for name in schema.partition_keys if name not in spelled.values()]
    if hidden:
        other = spelled[avro_name(hidden[0])]
        return f"partition columns {hidden[0]!r} and {other!r} have one name in Iceberg's manifests; rename one"
    try:
        iceberg_schema(schema)
    except InvalidInputError as error:
        return str(error)
    return None


def _type_problem(schema: TableSchema, earlier: Sequence[TableSchema]) -> str | None:
    """Return which column has been given a type that Iceberg's readers do not convert the former one to."""
    current = {each.id: each for each in schema.fields}
    for version in earlier:
        for was in version.fields:
            now = current.get(was.id)
            pairs = [] if now is None else _changed_leaves(was.type, now.type)
            for old, new in pairs:
                if not _is_promoted(old, new):
                    return (
                        f"column {was.name!r} was {was.type} and is {new}, which Iceberg's readers do not convert; add "
                        "a column of the new type, and fill it"
                    )
    return None


def _changed_leaves(was: DataType, now: DataType) -> list[tuple[DataType, DataType]]:
    """Return the scalar types, old and new, that differ."""
    if not is_nested(was) or not is_nested(now):
        return [] if was.not_null() == now.not_null() else [(was, now)]
    if isinstance(was, RowType) and isinstance(now, RowType):
        parts = {each.id: each.type for each in now.fields}
        pairs = [(each.type, parts[each.id]) for each in was.fields if each.id in parts]
    else:
        pairs = list(zip((of for _, of in children_of(was)), (of for _, of in children_of(now)), strict=True))
    return [leaf for old, new in pairs for leaf in _changed_leaves(old, new)]


def _is_promoted(was: DataType, now: DataType) -> bool:
    """Return whether Iceberg allows the change, https://iceberg.apache.org/spec/#schema-evolution."""
    try:
        old, new = primitive_type(was), primitive_type(now)
    except InvalidInputError:
        return False
    if old == new or (old, new) in (_INTEGERS, _FLOATS):
        return True
    is_decimal = was.root is now.root is TypeRoot.DECIMAL
    return is_decimal and was.scale == now.scale and (was.precision or 0) <= (now.precision or 0)
