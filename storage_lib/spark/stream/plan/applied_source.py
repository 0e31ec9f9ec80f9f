"""Finds the topic whose records a data frame applies to a table (``read_changelog(table=...)``), and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.external.external_topic import APPLIED_TO
from storage_lib.log_store.external.source_metadata import metadata_of
from storage_lib.schema.options.source_options import METADATA
from storage_lib.spark.data_source.changelog_source import SOURCE_NAME
from storage_lib.spark.stream.plan.query_tree import Project, Stream
from storage_lib.spark.stream.plan.read_query_tree import column_numbers, options_in, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from storage_lib.table.dynamic_table import DynamicTable

_SEQUENCE = "sequence.field"


def applied_options(df: DataFrame) -> Mapping[str, str] | None:
    """Return the options of the first such topic that the data frame reads; None if it reads none."""
    return next((options for options in _topics(df) if APPLIED_TO in options), None)


def refuse_unordered(df: DataFrame, table: DynamicTable) -> None:
    """Raise ``InvalidInputError`` if a topic fills the table's ``sequence.field`` and was not told so.

    Rows of records without that metadata would be older than all others.
    """
    fields = table.options.sequence_field
    for given in _topics(df):
        options = {key.lower(): value for key, value in given.items()}
        filled = [name for name in fields if name in metadata_of(options.get(METADATA))]
        told = [name.strip() for name in options.get(_SEQUENCE, "").split(",")]
        if filled and told != [*fields]:
            option = f"{_SEQUENCE}={','.join(fields)}"
            message = (
                f"table {table.name}: topic {options.get('topic')!r} fills {filled[0]!r} of {option} from metadata, so "
                f"each record has to have it. Give read_changelog() the option {option}, too"
            )
            raise InvalidInputError(message)


def _topics(df: DataFrame) -> Iterator[Mapping[str, str]]:
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001  pyspark offers no other way
    leaves = plan.collectLeaves()
    for leaf in (leaves.apply(place) for place in range(leaves.size())):
        if leaf.getClass().getSimpleName() == "StreamingRelationV2" and str(leaf.sourceName()) == SOURCE_NAME:
            yield options_in(leaf.extraOptions())


def is_unchanged(df: DataFrame) -> bool:
    """Return whether a data frame is its stream: all columns under their names, and all rows. Their order may differ.

    Columns may have been given the table's types, as INSERT does.
    """
    node, columns = tree_of(df), column_numbers(df)
    while isinstance(node, Project):
        made = {name: node.columns[number].same_as for name, number in columns.items()}
        columns = {name: number for name, number in made.items() if number is not None}
        if len(columns) < len(made):
            return False
        node = node.child
    return isinstance(node, Stream) and columns == node.table.columns
