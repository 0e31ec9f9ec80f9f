"""The CREATE MATERIALIZED TABLE statement of an existing table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.materialized_table import (
    FRESHNESS_OPTION,
    FRESHNESS_UNIT_OPTION,
    PREFIX,
    Freshness,
    TargetLag,
    freshness_options,
)
from storage_lib.schema.options.table_options import OWN_PREFIX, masked
from storage_lib.sql.definition.create_text import spelled
from storage_lib.sql.text.query_tables import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable


def materialized_text_of(table: DynamicTable) -> str:
    """Return the statement, on several lines, without options that belong to this table only, such as its uuid.

    Comments show what no clause can say: the settings that the table is refreshed under, which a new table has from its
    session, and the columns that ``*`` stands for.

    Raises ``InvalidInputError`` for an ordinary table.
    """
    definition, schema = table.definition, table.schema
    if definition is None:
        message = f"table {table.name} is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database"
        raise InvalidInputError(message)
    text = f"CREATE MATERIALIZED TABLE {'.'.join(quoted(part) for part in table.name.split('.'))}"
    if schema.primary_keys:
        text += f" (\n  PRIMARY KEY ({', '.join(map(quoted, schema.primary_keys))}) NOT ENFORCED\n)"
    if schema.comment:
        text += f"\nCOMMENT {spelled(schema.comment)}"
    if schema.partition_keys:
        text += f"\nPARTITIONED BY ({', '.join(map(quoted, schema.partition_keys))})"
    options = {
        key: value for key, value in sorted(masked(schema.options).items()) if not key.startswith((OWN_PREFIX, PREFIX))
    }
    if options:
        pairs = ",\n  ".join(f"{spelled(key)} = {spelled(value)}" for key, value in options.items())
        text += f"\nWITH (\n  {pairs}\n)"
    if isinstance(definition.freshness, TargetLag):
        text += f"\nTARGET_LAG = {freshness_text(definition.freshness)}"
    elif definition.freshness is not None:
        text += f"\nFRESHNESS = {freshness_text(definition.freshness)}"
    remarks = "".join(f"\n-- {each}" for each in _remarks(definition))
    return f"{text}\nREFRESH_MODE = {definition.refresh_mode.upper()}{remarks}\nAS {definition.query}"


def _remarks(definition: MaterializedTableDefinition) -> Iterator[str]:
    """Yield lines about the definition; JSON, because a name or a value may have line breaks."""
    if definition.settings is not None:
        yield f"settings: {json.dumps(dict(definition.settings))}"
    for source, columns in definition.columns or ():
        yield f"columns of {json.dumps(source)}: {json.dumps(columns)}"


def freshness_text(freshness: Freshness) -> str:
    """Return DOWNSTREAM, or a duration as an INTERVAL of the largest unit of which it is a multiple."""
    if isinstance(freshness, TargetLag):
        return freshness.upper()
    options = freshness_options(freshness)
    return f"INTERVAL '{options[FRESHNESS_OPTION]}' {options[FRESHNESS_UNIT_OPTION]}"
