"""A streaming INSERT whose query Spark can't stream over changes: it is kept up to date from its tables' commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.materialized.algebra import tables_of
from storage_lib.materialized.sources.source_tables import BoundQuery, bound_query
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.spark.insert_stream.insert_stream import refuse_query, refuse_table
from storage_lib.sql.query.changes_in_query import LostChangesError
from storage_lib.sql.query.definition_query import definition_query

if TYPE_CHECKING:
    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.sql.text.query_tables import Query
    from storage_lib.sql.text.source_text import SourceText
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress

_READER = "a streaming INSERT into table"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """A query whose answer a stream keeps in a table, compiled over its sources in the catalog of ``home``."""

    table: DynamicTable
    definition: MaterializedTableDefinition
    home: TableAddress
    bound: BoundQuery

    @property
    def sentence(self) -> str:
        """What the stream does, for people."""
        names = ", ".join(self.bound.sources)
        return f"each micro-batch applies what commits of {names} changed in the query's result"

    @property
    def lines(self) -> list[str]:
        """How each operator of the query is maintained, for EXPLAIN."""
        return [str(each) for each in self.bound.compiled.operators]


def is_about_streaming(refusal: InvalidInputError) -> bool:
    """Return whether a query may be refused only because it is a stream."""
    return isinstance(refusal, LostChangesError) or isinstance(refusal.__cause__, AnalysisException)


def kept_answer(
    state: SessionState, table: DynamicTable, query: Query, source: SourceText, refusal: InvalidInputError
) -> KeptAnswer:
    """Return the query of a streaming INSERT, which Spark can't stream for the reason ``refusal``.

    Raises ``InvalidInputError`` with both reasons if it can't be kept up to date from commits either.
    """
    try:
        text = definition_query(state, query, source, table=table.name, reader=_READER, has_names=False).text
        names = tables_of(text, database=state.database)
        definition = MaterializedTableDefinition(query=text, database=state.database, sources=names)
        home = state.catalog.load_table(names[0]).address
        bound = bound_query(home, definition, has_names=False)
        refuse_table(table)
        refuse_query(bound)
    except (InvalidInputError, NotFoundError) as error:
        if not isinstance(refusal, LostChangesError):
            raise refusal from refusal.__cause__
        message = f"{refusal}. Nor can its result be kept up to date from the commits of its tables: {error}"
        raise InvalidInputError(message) from error
    return KeptAnswer(table=table, definition=definition, home=home, bound=bound)
