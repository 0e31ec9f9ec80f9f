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
        message = f"{column} only Parquet files hold; declare file.format={_PARQUET}, not {others[0]}"
        raise InvalidInputError(message)
    if options.effective_log_system is not LogSystem.NONE:
        message = (
            f"{column} a log can't carry: as JSON a decimal, a date or a moment in it would come back as something "
            f"else. Declare log.system={LogSystem.NONE}, and its streams follow the snapshots; or keep the JSON itself "
            "in a STRING"
        )
        raise InvalidInputError(message)
    if schema.counts_values:
        message = (
            f"{column} has no equality, so equal rows could not be counted. Declare primary_key=[...], or "
            "write-mode=append-only; or keep the JSON itself in a STRING"
        )
        raise InvalidInputError(message)
    had = {} if before is None else before.options
    for key in _SHREDDING:
        value = schema.options.get(key, "false")
        if value.strip().lower() != "false" and value != had.get(key):
            message = (
                f"table {table}: option {key}={value} makes other engines cut the variants of column {name!r} into "
                "columns of their own, which this library does not put together; leave it out"
            )
            raise InvalidInputError(message)
