"""Schemas from one line of text: ``schema_of("id BIGINT, name STRING", key="id")``."""

from __future__ import annotations

from storage_lib.schema.table_schema import DataField, TableSchema, new_table_schema
from storage_lib.schema.types.type_spelling import parse_columns, parse_type


def schema_of(columns: str, *, key: str = "", partition: str = "", **options: str) -> TableSchema:
    """Parse ``name TYPE, ...``; keys are comma-separated names; ``bucket_key="id"`` sets option bucket-key."""
    return new_table_schema(
        parse_columns(columns),
        primary_keys=_names(key),
        partition_keys=_names(partition),
        options={"bucket": "1", **{name.replace("_", "-"): text for name, text in options.items()}},
        time_millis=0,
    )


def field_of(spelled: str, name: str = "c", field_id: int = 0) -> DataField:
    """Return one column of a type."""
    return DataField(id=field_id, name=name, type=parse_type(spelled))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
