"""Run a query: replace each dynamic table in its text by a Spark view, and let Spark run the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException

from storage_lib.errors import InvalidInputError
from storage_lib.spark.java.temporary_views import create_view, drop_views
from storage_lib.spark.reading.metadata_answer import answer_of
from storage_lib.spark.reading.native_read import is_enabled
from storage_lib.spark.reading.query_needs import needs_of
from storage_lib.sql.query.catalog_tables import catalog_relation
from storage_lib.sql.query.information_schema import information_frame, information_relation
from storage_lib.sql.query.relations import BatchReads, Relation, StreamReads, relation_of
from storage_lib.sql.query.stored_views import VIEW_DEPTH_MAX, cycle, refuse_hint_on_view, view_text
from storage_lib.sql.state.session_state import SessionState, ViewText
from storage_lib.sql.state.settings import RuntimeMode
from storage_lib.sql.state.spark_words import errors_in_words, without_pages_of_json
from storage_lib.sql.text.mapped_text import MappedText
from storage_lib.sql.text.query_tables import Query, TableReference, quoted
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.catalog.views.view import View

_UNKNOWN_COLUMN = "UNRESOLVED_COLUMN"
_FILE_FORMATS = ("parquet", "orc", "avro", "json", "csv", "text", "xml", "binaryfile")


@dataclass
class Rewritten:
    """A query rewritten for Spark. ``views`` have to be dropped; ``streams`` are the streams that it reads, by offset.

    A stream inside a temporary view has a negative number instead of an offset. ``query`` is the original; with
    ``all_columns`` its tables keep the columns that it does not name.
    """

    query: Query
    is_streaming: bool
    projected: str | None = None
    all_columns: bool = False
    text: MappedText = field(default_factory=MappedText)
    views: list[str] = field(default_factory=list)
    streams: dict[int, Relation] = field(default_factory=dict)
    reads: StreamReads = field(default_factory=StreamReads)
    batch: BatchReads = field(default_factory=BatchReads)

    @property
    def changes(self) -> dict[int, Relation]:
        """The streams with row kinds, as opposed to streams of added rows."""
        return {place: each for place, each in self.streams.items() if each.row_kind_column is not None}


@contextmanager
def rewritten(
    state: SessionState,
    query: Query,
    *,
    streaming: bool | None = None,
    projected: str | None = None,
    reads: StreamReads | None = None,
    all_columns: bool = False,
    is_live: bool = False,
    may_answer: bool = False,
    only_plans: bool = False,
) -> Iterator[Rewritten]:
    """Replace the query's tables by views while the body runs. ``projected`` is appended to its columns.

    In a batch, the views are of snapshots fixed now, unless ``is_live``: then each computation reads the newest ones.
    With ``may_answer``, a query that metadata answers gets neither views nor a text, but ``batch.answer``. With
    ``only_plans``, nobody computes the result.
    """
    is_streaming = state.settings.runtime_mode is RuntimeMode.STREAMING if streaming is None else streaming
    batch = BatchReads(is_live=is_live)
    if not (is_streaming or is_live or all_columns) and is_enabled(state.spark):
        batch = _reads_with_needs(state, query, projected, may_answer=may_answer, only_plans=only_plans)
    result = Rewritten(
        query=query,
        is_streaming=is_streaming,
        projected=projected,
        all_columns=all_columns,
        reads=reads or StreamReads(),
        batch=batch,
    )
    try:
        if batch.answer is None:
            with errors_in_words():
                _rewrite(state, query, result, query.start, is_streaming=is_streaming, projected=projected)
        yield result
    finally:
        drop_views(state.spark, result.views)


def _reads_with_needs(
    state: SessionState, query: Query, projected: str | None, *, may_answer: bool, only_plans: bool
) -> BatchReads:
    """Return reads of what the query needs of its tables, or of everything if Spark refuses it, as it will again."""
    shape = Rewritten(
        query=query, is_streaming=False, projected=projected, all_columns=True, batch=BatchReads(is_shape=True)
    )
    try:
        with errors_in_words():
            _rewrite(state, query, shape, query.start, is_streaming=False, projected=projected)
        if not shape.batch.schemas:
            return shape.batch.of_same_tables()
        with without_pages_of_json():
            df = state.analysed(shape.text.text)
            needs = needs_of(df, shape.batch.schemas)
    except (PySparkException, Py4JJavaError):
        return shape.batch.of_same_tables()
    finally:
        drop_views(state.spark, shape.views)
    with errors_in_words():
        answer = answer_of(df, shape.batch.reads, needs) if may_answer else None
    return replace(shape.batch.of_same_tables(), needs=needs, answer=answer, only_plans=only_plans)


def dataframe_of(
    state: SessionState,
    query: Query,
    source: SourceText,
    *,
    streaming: bool | None = None,
    is_live: bool = False,
    only_plans: bool = False,
) -> DataFrame:
    """Return the query's result as a lazy data frame; ``is_live`` and ``only_plans`` as for ``rewritten``.

    Raises ``NotFoundError`` and ``InvalidInputError`` with the position in ``source``, the statement of the query.
    """
    with rewritten(state, query, streaming=streaming, is_live=is_live, may_answer=True, only_plans=only_plans) as found:
        return sql_of(state, found, source) if found.batch.answer is None else found.batch.answer.df


def view_frame(state: SessionState, view: View) -> DataFrame:
    """Return the result of a view that the catalog stores, analysed to tell its columns, not to be computed.

    Raises as ``dataframe_of`` does, with the place in the view's text.
    """
    text = view_text(view)
    return dataframe_of(state, text.statement.query, text.source, streaming=False, only_plans=True)


def sql_of(state: SessionState, found: Rewritten, source: SourceText, *, prefix: str = "") -> DataFrame:
    """Let Spark analyse a rewritten query; return the lazy data frame."""
    whole = found.text.behind(prefix) if prefix else found.text
    with errors_in_words(source, whole):
        try:
            return state.analysed(whole.text)
        except AnalysisException as error:
            if not found.all_columns and (error.getCondition() or "").startswith(_UNKNOWN_COLUMN):
                _analyse_with_all_columns(state, found, source, prefix)
            raise


def _analyse_with_all_columns(state: SessionState, found: Rewritten, source: SourceText, prefix: str) -> None:
    """Raise Spark's error about an unknown column again, with suggestions from all columns of the tables.

    The views only have columns that the query names, so the intended column is usually not among them.
    """
    with rewritten(
        state,
        found.query,
        streaming=found.is_streaming,
        projected=found.projected,
        reads=found.reads,
        all_columns=True,
    ) as whole:
        sql_of(state, whole, source, prefix=prefix)


def _rewrite(
    state: SessionState,
    query: Query,
    result: Rewritten,
    origin: int | None,
    *,
    is_streaming: bool,
    projected: str | None = None,
    depth: int = 0,
) -> None:
    """Append the query with its tables replaced. ``origin`` is its offset in the statement; None: a view's text."""
    if depth > VIEW_DEPTH_MAX:
        raise cycle(tuple(each for table in query.tables for each in table.parts[-1:]))
    at = query.start
    edits: list[tuple[int, int, TableReference | str | None]] = []
    edits += [(each.start, each.end, each) for each in query.tables]
    edits += [(start, end, None) for start, end in query.qualifiers]
    if projected is not None and query.shape.projection_end is not None:
        edits.append((query.shape.projection_end, query.shape.projection_end, projected))

    def copy(until: int) -> None:
        text = query.text[at - query.start : until - query.start]
        result.text.add(text, None if origin is None else origin + at - query.start)

    for start, end, what in sorted(edits, key=lambda edit: edit[:2]):
        copy(start)
        at = start
        if isinstance(what, str):
            result.text.add(what)
        elif what is not None and not _replace(state, query, what, result, is_streaming=is_streaming, depth=depth):
            copy(end)
        at = end
    copy(query.start + len(query.text))


def _replace(
    state: SessionState,
    query: Query,
    reference: TableReference,
    result: Rewritten,
    *,
    is_streaming: bool,
    depth: int,
) -> bool:
    """Append the replacement of a table or view; return False if it is neither, and is copied unchanged."""
    view = state.view(reference.parts)
    if view is not None:
        _inline(state, view, reference, result, is_streaming=is_streaming, depth=depth)
        return True
    reader = replace(query, has_star=True) if result.all_columns else query
    relation = catalog_relation(state, reader, reference, result.batch)
    if relation is None:
        relation = relation_of(state, reader, reference, streaming=is_streaming, reads=result.reads, batch=result.batch)
    if relation is None:
        information = information_relation(state, reference.parts)
        if information is not None:
            relation = _information(state, reference, information, result.batch)
    if relation is None:
        stored = state.find_stored_view(reference.parts)
        if stored is not None:
            _inline(state, view_text(stored), reference, result, is_streaming=is_streaming, depth=depth)
            return True
        _check_sparks(state, reference)
        return False
    name = state.new_view_name()
    create_view(relation.df, name)
    result.views.append(name)
    if relation.is_stream:
        result.streams[reference.start if depth == 0 else -len(result.streams) - 1] = relation
    aliased = quoted(name) + _alias(reference)
    # In Spark, TABLESAMPLE precedes the alias; parentheses let our alias come first.
    result.text.add(f"({aliased})" if reference.is_sampled and reference.alias is None else aliased)
    return True


def _information(state: SessionState, reference: TableReference, name: str, batch: BatchReads) -> Relation:
    is_shape = batch.is_shape or batch.only_plans
    return Relation(df=information_frame(state, reference, name, view_frame=view_frame, is_shape=is_shape), name=name)


def _inline(
    state: SessionState,
    view: ViewText,
    reference: TableReference,
    result: Rewritten,
    *,
    is_streaming: bool,
    depth: int,
) -> None:
    refuse_hint_on_view(reference)
    columns = view.statement.columns
    if columns:
        result.text.add("(SELECT * FROM ")
    result.text.add("(")
    _rewrite(state, view.statement.query, result, None, is_streaming=is_streaming, depth=depth + 1)
    result.text.add(")")
    if columns:
        result.text.add(f" AS {quoted(reference.parts[-1])}({', '.join(quoted(each) for each in columns)}))")
    result.text.add(_alias(reference))


def _alias(reference: TableReference) -> str:
    """Return an alias with the table's own name, which qualifies its columns; empty if the query has an alias."""
    return f" AS {quoted(reference.parts[-1])}" if reference.alias is None else ""


def _check_sparks(state: SessionState, reference: TableReference) -> None:
    """Refuse an unknown name, and hints and AS OF on a table of Spark."""
    if not _is_file(state, reference.parts) and not state.is_sparks(reference.parts):
        raise state.not_found(reference.parts)
    if reference.hint or reference.as_of is not None:
        message = f"{reference} is a Spark table; hints and AS OF are for dynamic tables"
        raise InvalidInputError(message)


def _is_file(state: SessionState, parts: Sequence[str]) -> bool:
    """Return whether this is Spark's syntax for files, as in parquet.`/data/orders`."""
    return len(parts) == 2 and parts[0].lower() in _FILE_FORMATS and not state.catalog.database_exists(parts[0])


def names_of_changes(changes: Sequence[Relation]) -> str:
    """Return the names of the tables for a message."""
    return ", ".join(sorted({each.name for each in changes}))
