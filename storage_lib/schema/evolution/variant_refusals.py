"""Refuse VARIANT columns that would have to be compared, or stored in a format that does not support them."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import LogSystem, TableOptions
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.nested_types import has_variant

_PARQUET = "parquet"
_SHREDDING = ("variant.shreddingSchema", "parquet.variant.shreddingSchema", "variant.inferShreddingSchema")


def refuse_variants(table: str, schema: TableSchema, before: TableSchema | None) -> None:
    """Raise ``InvalidInputError``, naming the column and the remedy, if the table can't have VARIANT columns.

    Shredding options that ``before`` already had were set by another engine; shredded values are refused when read.
    """
    name = next((field.name for field in schema.fields if has_variant(field.type)), None)
    if name is None:
        return
    options = TableOptions.parse(schema.options)
    column = f"table {table}: column {name!r} is a VARIANT, which"
    formats = {options.file_format, *(options.file_format_per_level or {}).values()}
    others = sorted(str(each) for each in formats if str(each) != _PARQUET)
    if others:
        message = f"{column} file.format={others[0]} cannot store; set file.format={_PARQUET}"
        raise InvalidInputError(message)
    if options.effective_log_system is not LogSystem.NONE:
        message = (
            f"{column} the log cannot store: its records are JSON, from which decimals, dates and timestamps inside a "
            f"VARIANT could not be restored. Set log.system={LogSystem.NONE}, so that streams read the snapshots, or "
            "store the JSON text in a STRING column"
        )
        raise InvalidInputError(message)
    if schema.counts_values:
        message = (
            f"{column} has no equality, so equal rows could not be counted. Declare primary_key=[...], or "
            "write-mode=append-only, or store the JSON text in a STRING column"
        )
        raise InvalidInputError(message)
    had = {} if before is None else before.options
    for key in _SHREDDING:
        value = schema.options.get(key, "false")
        if value.strip().lower() != "false" and value != had.get(key):
            message = (
                f"table {table}: option {key}={value} makes other engines shred the VARIANT column {name!r}, which "
                "this library cannot read; remove the option"
            )
            raise InvalidInputError(message)
