"""The query, columns and settings that a stream of a query's answer stores in its checkpoint.

Rows that a change removes from the answer are computed again, so they have to be what was written: by the same query,
over the same columns, under the settings of Spark that values depend on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.sources.source_tables import needed_columns
from storage_lib.schema.options.value_settings import differing
from storage_lib.spark.data_source.checkpoint_identity import PLANNED, QUERY_FILE, is_there, settled
from storage_lib.spark.engine.session_settings import settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.materialized.sources.source_tables import BoundQuery
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.schema.options.value_settings import Settings
    from storage_lib.table.dynamic_table import DynamicTable

Columns = Mapping[str, Sequence[Sequence[object]]]
"""Name, type and id of each column that a query reads, in the source's order, by source."""


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """Columns and settings with which a stream first started."""

    columns: Columns
    settings: Settings


def stored_query_of(
    spark: SparkSession,
    table: DynamicTable,
    checkpoint: str,
    definition: MaterializedTableDefinition,
    bound: BoundQuery,
) -> StoredQuery:
    """Return what the stream of a checkpoint began with, which is stored if it is new.

    Raises ``InvalidInputError`` for the checkpoint of another stream or another query, and for altered columns.
    """
    named = {"query": definition.query, "database": definition.database}
    now = {**named, "columns": _columns(bound), "settings": dict(settings_of(spark))}
    is_other = is_there(spark, checkpoint, PLANNED) and not is_there(spark, checkpoint, QUERY_FILE)
    stored: dict[str, Any] = {}
    if not is_other:
        stored = json.loads(settled(spark, f"{checkpoint.rstrip('/')}/{QUERY_FILE}", json.dumps(now)))
    if any(stored.get(key) != value for key, value in named.items()):
        message = (
            f"table {table.name}: checkpoint {checkpoint} is of another stream or of one with another query, whose "
            "rows are in the table. Give this one a checkpoint of its own, and an empty table"
        )
        raise InvalidInputError(message)
    # Older versions stored null for a setting that had its default.
    settings = differing({name: value for name, value in stored["settings"].items() if value is not None})
    stored_query = StoredQuery(stored["columns"], settings)
    refuse_altered(stored_query, bound)
    return stored_query


def refuse_altered(stored_query: StoredQuery, bound: BoundQuery) -> None:
    """Raise ``InvalidInputError`` if a column that the query reads is not the one that the stream began with."""
    now = _columns(bound)
    for source, before in stored_query.columns.items():
        if [list(each) for each in before] != now.get(source):
            message = (
                f"columns of {source} that a stream reads have changed since it began, so the rows that it has written "
                "can't be computed again: start it with a new checkpoint, into an empty table"
            )
            raise InvalidInputError(message)


def _columns(bound: BoundQuery) -> dict[str, list[list[object]]]:
    found = {}
    for name, source in bound.sources.items():
        read = set(needed_columns(bound.compiled, name, source))
        fields = [field for field in source.schema.fields if field.name in read]
        found[name] = [[field.name, str(field.type), field.id] for field in fields]
    return found
