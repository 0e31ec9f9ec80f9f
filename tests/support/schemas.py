"""Schemas in a line of text: ``schema_of("id BIGINT, name STRING", key="id")``."""

from __future__ import annotations

import re

from storage_lib.schema.data_types import parse_data_type
from storage_lib.schema.table_schema import DataField, TableSchema, new_table_schema

_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")


def schema_of(columns: str, *, key: str = "", partition: str = "", **options: str) -> TableSchema:
    """``columns`` as ``name TYPE, ...``; keys as comma-separated names; ``bucket_key="id"`` is option bucket-key."""
    typed = []
    for column in _OUTSIDE_PARENTHESES.split(columns) if columns else []:
        name, _, spelled = column.strip().partition(" ")
        typed.append((name, parse_data_type(spelled)))
    return new_table_schema(
        typed,
        primary_keys=_names(key),
        partition_keys=_names(partition),
        options={"bucket": "1", **{name.replace("_", "-"): text for name, text in options.items()}},
        time_millis=0,
    )


def field_of(spelled: str, name: str = "c", field_id: int = 0) -> DataField:
    """One column of a type."""
    return DataField(id=field_id, name=name, type=parse_data_type(spelled))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
