"""The CREATE TABLE statement of an existing table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.schema.options.event_time import watermarks
from storage_lib.schema.options.metadata_options import metadata_names
from storage_lib.schema.options.table_options import OWN_PREFIX, masked
from storage_lib.sql.definition.virtual_columns import computed_columns, computed_comment, is_virtual
from storage_lib.sql.text.query_tables import quoted

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def create_text_of(table: DynamicTable) -> str:
    """Return the statement, on several lines, without options that belong to this table only, such as its uuid."""
    schema = table.schema
    metadata = metadata_names(schema.options)
    lines = []
    for field in schema.fields:
        of_records = f" METADATA FROM {spelled(metadata[field.name])}" if field.name in metadata else ""
        lines.append(_column(field.name, f"{field.type}{of_records}", field.description))
    for name, expression in computed_columns(schema.options).items():
        lines.append(_column(name, f"AS ({expression})", computed_comment(schema.options, name)))
    for column, delay in watermarks(schema.options).items():
        amount, unit = delay.split(" ")
        lines.append(f"WATERMARK FOR {quoted(column)} AS {quoted(column)} - INTERVAL '{amount}' {unit}")
    if schema.primary_keys:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, schema.primary_keys))}) NOT ENFORCED")
    name = ".".join(quoted(part) for part in table.name.split("."))
    text = f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + "\n)"
    if schema.comment:
        text += f"\nCOMMENT {spelled(schema.comment)}"
    if schema.partition_keys:
        text += f"\nPARTITIONED BY ({', '.join(map(quoted, schema.partition_keys))})"
    options = {
        key: value
        for key, value in sorted(masked(schema.options).items())
        if not key.startswith(OWN_PREFIX) and not is_virtual(key)
    }
    if options:
        pairs = ",\n  ".join(f"{spelled(key)} = {spelled(value)}" for key, value in options.items())
        text += f"\nWITH (\n  {pairs}\n)"
    return text


def spelled(text: str) -> str:
    """Return a text as a string literal of the grammar, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _column(name: str, type_: str, comment: str | None) -> str:
    return f"{quoted(name)} {type_}" + ("" if not comment else f" COMMENT {spelled(comment)}")
