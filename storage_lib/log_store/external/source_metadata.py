"""Columns that are filled from the metadata of records, by two spellings.

    source.metadata = lsn = value.source.lsn, ...      option of a reader
    lsn BIGINT METADATA FROM 'value.source.lsn'        column of a table, for all of its readers (metadata_options.py)

Such a column can be the table's ``sequence.field``. Then the rows of a key have the order of the source, whichever
partitions of the topic they are read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.conversion.number_values import TEXT_ROOTS
from storage_lib.log_store.external.external_format import ExternalFormat
from storage_lib.log_store.metadata.metadata_column import MetadataColumn
from storage_lib.log_store.metadata.metadata_names import (
    FLINK_NAMES,
    KAFKA_METADATA,
    METADATA,
    OFFSET,
    PARTITION,
    TOPIC,
)
from storage_lib.schema.options.metadata_options import metadata_key, metadata_names
from storage_lib.schema.options.nearest import did_you_mean, nearest
from storage_lib.schema.options.source_options import METADATA as OPTION
from storage_lib.schema.options.table_options import MergeEngine, SortOrder, TableOptions

if TYPE_CHECKING:
    from storage_lib.log_store.metadata.metadata_names import Metadata
    from storage_lib.schema.table_schema import TableSchema

_EXAMPLE = "write column = metadata, such as lsn = value.source.lsn, written = timestamp"
_WITHOUT_ORDER = (PARTITION, OFFSET, TOPIC)


def metadata_of(text: str | None) -> Mapping[str, Metadata]:
    """Parse the option: metadata by column. Raises ``InvalidInputError`` for unknown metadata."""
    found: dict[str, Metadata] = {}
    for pair in [] if text is None else text.split(","):
        column, sign, name = (part.strip() for part in pair.rpartition("="))
        if not sign or not column or column in found:
            message = f"option {OPTION} is {text!r}; {_EXAMPLE}, each column once"
            raise InvalidInputError(message)
        found[column] = _known(f"option {OPTION}", name)
    return found


def declared_metadata(table: TableSchema) -> Mapping[str, Metadata]:
    """Return the metadata that a table declares, by column. Raises ``InvalidInputError`` for unknown metadata."""
    return {column: _known(metadata_key(column), name) for column, name in metadata_names(table.options).items()}


def refuse_declared_metadata(table: TableSchema) -> None:
    """Raise ``InvalidInputError`` for a declaration that no reader could follow."""
    metadata_columns("", ExternalFormat.DEBEZIUM_JSON, {}, table)


def _known(where: str, name: str) -> Metadata:
    known = METADATA.get(FLINK_NAMES.get(name, name))
    if known is None:
        like = nearest(name, [*METADATA, *FLINK_NAMES])
        remedy = f". Use one of {', '.join(METADATA)}" if like is None else f"; did you mean {like!r}?"
        message = f"{where}: records have no metadata {name!r}{remedy}"
        raise InvalidInputError(message)
    return known


def metadata_columns(
    topic: str, of_format: ExternalFormat, of_reader: Mapping[str, Metadata], table: TableSchema
) -> tuple[MetadataColumn, ...]:
    """Return the columns in the table's order: those that it declares, and those of the reader's option.

    Raises ``InvalidInputError`` if the table has no such column, can't be filled so, or the format has no such
    metadata, and if both name other metadata for a column.
    """
    metadata = {**declared_metadata(table), **of_reader}
    if not metadata:
        return ()
    where = f"topic {topic}: " if topic else ""
    where += f"option {OPTION}" if of_reader else "METADATA"
    _refuse_contradiction(where, declared_metadata(table), of_reader)
    options = TableOptions.parse(table.options)
    for name, of in metadata.items():
        if name not in [field.name for field in table.fields]:
            near = did_you_mean(name, [field.name for field in table.fields])
            message = f"{where} fills column {name!r}, which the table does not have{near}; add it first"
            raise InvalidInputError(message)
        if name in table.primary_keys or name in table.partition_keys:
            message = (
                f"{where} fills column {name!r}, which is in the primary key or partitions the table: deletions would "
                "not find their rows. Use another column"
            )
            raise InvalidInputError(message)
        if of_format.is_upsert and of.path is not None:
            message = (
                f"{where}: records of {of_format} have no {of.name}; use {', '.join(m.name for m in KAFKA_METADATA)}"
            )
            raise InvalidInputError(message)
    _refuse_without_key(where, table, options)
    _check_sequence(where, metadata, options)
    columns = tuple(
        MetadataColumn(
            field=replace(field, type=field.type.with_nullable(True)),
            place=place,
            metadata=metadata[field.name],
            is_required=field.name in options.sequence_field,
        )
        for place, field in enumerate(table.fields)
        if field.name in metadata
    )
    _check_types(where, columns)
    return columns


def _check_types(where: str, columns: Sequence[MetadataColumn]) -> None:
    for each in columns:
        if not each.takes(each.metadata.written):
            times = ", TIMESTAMP_LTZ(3) or wider" if each.metadata.unit else ""
            plain = "BIGINT" if each.metadata.unit or each.metadata.written.bits else "STRING"
            message = (
                f"{where}: column {each.field.name!r} is {each.field.type}, which can't hold {each.metadata.name}; "
                f"make it {plain}{times}"
            )
            raise InvalidInputError(message)
        if each.is_required and each.metadata.is_digits and each.field.type.root in TEXT_ROOTS:
            message = (
                f"{where}: column {each.field.name!r} of sequence.field is {each.field.type}, and {each.metadata.name} "
                "is a number: as text, 9 would be newer than 10. Make it DECIMAL(38, 0)"
            )
            raise InvalidInputError(message)


def _refuse_contradiction(where: str, declared: Mapping[str, Metadata], of_reader: Mapping[str, Metadata]) -> None:
    for name in declared.keys() & of_reader.keys():
        if declared[name] is not of_reader[name]:
            message = (
                f"{where} fills column {name!r} with {of_reader[name].name}, but the table declares it as METADATA "
                f"FROM {declared[name].name!r}; leave it out of the option"
            )
            raise InvalidInputError(message)


def _refuse_without_key(where: str, table: TableSchema, options: TableOptions) -> None:
    """Refuse tables that take rows back by all of their values: those of a deletion are not those of its row."""
    if table.is_append_only or (table.primary_keys and not options.merge_engine.needs_old_rows):
        return
    what = f"merge-engine={options.merge_engine}" if table.primary_keys else "no primary key"
    message = (
        f"{where}: the table has {what}, so a deletion has to repeat its row with all values, but it has other "
        "metadata. Use a table with the key of the source and merge-engine=deduplicate, or an append-only one"
    )
    raise InvalidInputError(message)


def _check_sequence(where: str, metadata: Mapping[str, Metadata], options: TableOptions) -> None:
    """Refuse orders that would leave out newer rows."""
    fields = options.sequence_field
    filled = [name for name in fields if name in metadata]
    if not filled:
        return
    if len(filled) < len(fields):
        message = (
            f"{where} fills {filled[0]!r} of sequence.field={','.join(fields)}, but not all of its columns, which a "
            "deletion does not tell otherwise. Fill all of them, or none"
        )
        raise InvalidInputError(message)
    if options.merge_engine is not MergeEngine.DEDUPLICATE:
        message = (
            f"{where} fills sequence.field={','.join(fields)} of a table with merge-engine={options.merge_engine}; "
            "use merge-engine=deduplicate"
        )
        raise InvalidInputError(message)
    if options.sequence_field_sort_order is SortOrder.DESCENDING:
        message = f"{where} fills sequence.field, but with sequence.field.sort-order=descending the oldest row wins"
        raise InvalidInputError(message)
    if metadata[fields[0]] in _WITHOUT_ORDER:
        message = (
            f"{where} fills {fields[0]!r}, the first column of sequence.field, with {metadata[fields[0]].name}, which "
            "says nothing about records of other partitions. Use value.source.lsn, or another order of the source, or "
            "Kafka's timestamp"
        )
        raise InvalidInputError(message)
