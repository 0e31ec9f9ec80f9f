"""One table of a query as a data frame, according to its hint, AS OF and the session's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.event_time import watermarks
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.table_options import canonical_key
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.fresh_scans import fresh_frame
from storage_lib.spark.data_source.incremental_range import RANGE_OPTIONS
from storage_lib.spark.reading.metadata_answer import MetadataAnswer, TableRead
from storage_lib.spark.reading.native_read import ReadSummary, SnapshotRead, frame_of_table
from storage_lib.spark.reading.query_needs import TableNeeds, empty_relation
from storage_lib.spark.runtime.allowed_text import refuse_expression
from storage_lib.spark.stream.pinned_snapshots import Pin
from storage_lib.spark.types.spark_schema import ROW_POSITION, struct_of
from storage_lib.sql.definition.virtual_columns import computed_columns, with_virtual_columns
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.state.settings import RUNTIME_MODE, RuntimeMode
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.text.query_clauses import AsOf
from storage_lib.sql.text.query_tables import Query, TableReference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.lakes.lake_version import LakeVersion
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.dynamic_table import DynamicTable

_BATCH_ONLY = (
    statement_options.SNAPSHOT_ID,
    statement_options.TAG_NAME,
    statement_options.SCAN_TIMESTAMP_MILLIS,
    *RANGE_OPTIONS,
)
_STREAM_ONLY = (
    statement_options.STARTUP,
    statement_options.TIMESTAMP_MILLIS,
    statement_options.NORMALIZE,
    statement_options.ON_UNTRACKED,
    statement_options.STATE_DIRECTORY,
    statement_options.ROWS_PER_TRIGGER_MAX,
)
_NONE = "none"
_OF_SNAPSHOTS = (statement_options.BRANCH, *_BATCH_ONLY)
READ_HINTS = (RUNTIME_MODE, *_OF_SNAPSHOTS, *_STREAM_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReads:
    """How the tables of a streaming query are read unless their hints override it.

    ``has_position``: streams have a column with the order of their rows; ``whole_commits``: micro-batches end only at
    the end of a commit. ``pinned``: snapshots by table.
    """

    normalize: str | None = None
    state_directory: str | None = None
    has_position: bool = False
    whole_commits: bool = False
    pinned: Mapping[str, Pin] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class BatchReads:
    """How a batch query reads its tables: each at one snapshot, however often the query names it.

    While ``is_shape``, tables are empty relations, from which ``needs`` are found; they are numbered in the order in
    which the query names them, and ``reads`` are filled with their snapshots. ``homes`` and ``tables`` are looked up
    once for a query: the catalog and full name of each table by the parts of its name, and the tables by full name.
    ``is_live``: every computation of the result reads the newest snapshot by then. ``only_plans``: nobody computes it,
    so no job prepares its reads. ``summaries`` are filled with what is read. ``answer``: the result, if the tables'
    metadata has it. ``snapshots`` are by location. ``versions`` are of tables of Delta Lake, with their columns.
    """

    is_live: bool = False
    is_shape: bool = False
    only_plans: bool = False
    needs: Mapping[int, TableNeeds] | None = None
    schemas: dict[int, TableSchema] = field(default_factory=dict)
    homes: dict[tuple[str, ...], tuple[Catalog, str] | None] = field(default_factory=dict)
    tables: dict[str, DynamicTable] = field(default_factory=dict)
    snapshots: dict[str, int] = field(default_factory=dict)
    versions: dict[tuple[object, ...], tuple[LakeVersion, StructType]] = field(default_factory=dict)
    reads: dict[int, TableRead] = field(default_factory=dict)
    summaries: list[ReadSummary] = field(default_factory=list)
    answer: MetadataAnswer | None = None

    def of_same_tables(self) -> BatchReads:
        """Return the reads of another pass over the query, with what has been looked up once for all passes."""
        return BatchReads(homes=self.homes, tables=self.tables, versions=self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table as a data frame. ``row_kind_column``: column of a stream with the row kinds; None: rows have none."""

    df: DataFrame
    name: str
    row_kind_column: str | None = None
    is_stream: bool = False


def relation_of(
    state: SessionState,
    query: Query,
    reference: TableReference,
    *,
    streaming: bool,
    reads: StreamReads,
    batch: BatchReads,
) -> Relation | None:
    """Return the table that a query names; None if it is not a dynamic table.

    Raises ``InvalidInputError`` for unknown hints and for hints that contradict each other.
    """
    if reference.parts not in batch.homes:
        batch.homes[reference.parts] = state.home_of(reference.parts)
    home = batch.homes[reference.parts]
    if home is None:
        return None
    catalog, name = home
    table_name = TableName.parse(name)
    hint = _checked_hint(name, reference, restricted=state.restricted)
    is_stream = _is_stream(hint, streaming=streaming)
    options = {key: value for key, value in hint.items() if key != RUNTIME_MODE}
    if reference.as_of is not None:
        options |= as_of_options(state, reference.as_of)
    if table_name.system_table is not None:
        return _system_table(state, catalog, table_name, options)
    table = batch.tables.get(name)
    if table is None:
        table = batch.tables[name] = catalog.load_table(name)
    if options.get(statement_options.BRANCH) is not None:
        table = table.branches.open(options.pop(statement_options.BRANCH))
    is_stream = is_stream and not any(key in options for key in _BATCH_ONLY)
    _refuse_of_streams(name, options, is_stream=is_stream)
    if is_stream:
        options |= _stream_options(state, table, options, reads)
        df = _stream(state, table, query, options, reads)
    elif streaming or batch.is_live:
        df = _newest(state, table, query, options, reads)
    else:
        df = snapshot_frame(state, table, query, options, batch, pinned=state.pinned.get(table.name))
    return Relation(
        df=with_computed_columns(state, df, table, query),
        name=name,
        row_kind_column=table.new_read().stream_row_kind_column if is_stream else None,
        is_stream=is_stream,
    )


def with_computed_columns(state: SessionState, df: DataFrame, table: DynamicTable, query: Query) -> DataFrame:
    """Add the computed columns that a query needs, and the watermarks.

    Raises ``InvalidInputError`` if a restricted session may not evaluate one that the query asks for.
    """
    return with_virtual_columns(df, table.schema.options, _allowed_computed(state, table, query))


def _stream_options(
    state: SessionState, table: DynamicTable, hint: Mapping[str, str], reads: StreamReads
) -> Mapping[str, str]:
    """Return the stream options of the hint, the table and the session; by default those that the query needs."""
    given = state.options_in_effect(table, hint)
    options = {key: given[key] for key in _STREAM_ONLY if key in given}
    if (
        statement_options.NORMALIZE not in hint
        and options.get(statement_options.NORMALIZE) == table.schema.options.get(statement_options.NORMALIZE) == _NONE
    ):
        # A table's own ``none`` is only a default: the query's needs override it.
        del options[statement_options.NORMALIZE]
    if reads.normalize is not None and statement_options.NORMALIZE not in options:
        options[statement_options.NORMALIZE] = reads.normalize
    if reads.state_directory is not None and statement_options.STATE_DIRECTORY not in options:
        options[statement_options.STATE_DIRECTORY] = f"{reads.state_directory}/{table.name}"
    if reads.whole_commits:
        options[statement_options.WHOLE_COMMITS] = "true"
    return options


def _is_stream(hint: Mapping[str, str], *, streaming: bool) -> bool:
    mode = hint.get(RUNTIME_MODE)
    if mode is None:
        return streaming
    if mode not in tuple(RuntimeMode):
        message = f"hint {RUNTIME_MODE} = {mode!r}{did_you_mean(mode, [str(each) for each in RuntimeMode])}"
        raise InvalidInputError(message)
    return mode == RuntimeMode.STREAMING


def _refuse_of_streams(name: str, options: Mapping[str, str], *, is_stream: bool) -> None:
    for key in _STREAM_ONLY if not is_stream else ():
        if key in options:
            message = (
                f"hint {key} of table {name} is for reading changes, and this is a read of one snapshot; "
                f"SET '{RUNTIME_MODE}' = 'streaming', or give the hint '{RUNTIME_MODE}' = 'streaming' as well"
            )
            raise InvalidInputError(message)


def _checked_hint(name: str, reference: TableReference, *, restricted: bool) -> dict[str, str]:
    """Return the hints by their current keys; untrusted SQL selects snapshots only, as streams write their state."""
    hint = {canonical_key(key): value for key, value in reference.hint.items()}
    for key in hint:
        if key not in READ_HINTS:
            message = f"a read of table {name} has no hint {key!r}{did_you_mean(key, READ_HINTS)}"
            raise InvalidInputError(message)
        if restricted and key not in _OF_SNAPSHOTS:
            message = f"hint {key} of table {name} is not allowed here; allowed are {', '.join(_OF_SNAPSHOTS)}"
            raise InvalidInputError(message)
    if reference.as_of is not None and any(key in _BATCH_ONLY for key in hint):
        message = f"table {name}: AS OF and a hint both select what to read; leave one of them out"
        raise InvalidInputError(message)
    return hint


def as_of_options(state: SessionState, as_of: AsOf) -> dict[str, str]:
    """Return the options of a read that AS OF stands for: of a snapshot, a tag or a time."""
    if as_of.is_time:
        with errors_in_words():
            row = state.analysed(f"SELECT unix_millis(CAST({as_of.expression} AS TIMESTAMP))").first()
        if row is None or row[0] is None:
            message = (
                f"invalid timestamp in TIMESTAMP AS OF {as_of.expression}; write for example '2024-05-14 01:00:00'"
            )
            raise InvalidInputError(message)
        return {statement_options.SCAN_TIMESTAMP_MILLIS: str(row[0])}
    version = as_of.expression.strip("'\"")
    return {statement_options.SNAPSHOT_ID if version.isdigit() else statement_options.TAG_NAME: version}


def _system_table(state: SessionState, catalog: Catalog, name: TableName, options: Mapping[str, str]) -> Relation:
    if options:
        message = f"{name} is a system table, which takes no such options; leave {', '.join(options)} out"
        raise InvalidInputError(message)
    table = catalog.load_table(str(name.plain))
    found = statement_options.options_of(table) | {statement_options.TABLE: str(name)}
    return Relation(df=state.spark.read.format(statement_options.SOURCE_NAME).options(**found).load(), name=str(name))


def snapshot_frame(
    state: SessionState,
    table: DynamicTable,
    query: Query,
    options: Mapping[str, str],
    batch: BatchReads,
    *,
    pinned: int | None = None,
) -> DataFrame:
    """Return the rows of a snapshot, which is fixed before the query runs: without ``options`` the newest one.

    ``pinned`` is read in place of the newest one.
    """
    if any(key in options for key in RANGE_OPTIONS):
        return (
            state.spark.read.format(statement_options.SOURCE_NAME)
            .options(**statement_options.options_of(table), **options)
            .load()
        )
    number = len(batch.schemas)
    batch.schemas[number] = table.schema
    given = statement_options.StatementOptions.parse({**statement_options.options_of(table), **options})
    pinned = None if options else batch.snapshots.get(table.location, pinned)
    if batch.is_shape:
        batch.reads[number] = TableRead(
            table=table,
            snapshot_id=given.snapshot_id if options else pinned,
            tag=given.tag,
            timestamp_millis=given.timestamp_millis,
            is_newest=not options,
        )
        return empty_relation(state.spark, table.schema, number)
    needs = None if batch.needs is None else batch.needs.get(number, TableNeeds(frozenset(), None))
    read = SnapshotRead(
        columns=needed_columns(table, query) if needs is None else [each.name for each in table.schema.fields],
        needed=None if needs is None else needs.columns,
        predicate=None if needs is None else needs.predicate,
        snapshot_id=given.snapshot_id if options else pinned,
        tag=given.tag,
        timestamp_millis=given.timestamp_millis,
        is_newest=not options,
        only_plans=batch.only_plans,
    )
    found = frame_of_table(state.spark, table, read)
    batch.summaries.append(found.summary)
    if not options:
        batch.snapshots[table.location] = found.summary.snapshot_id or 0
    return found.df


def _newest(
    state: SessionState, table: DynamicTable, query: Query, options: Mapping[str, str], reads: StreamReads
) -> DataFrame:
    """Return the rows of the newest snapshot whenever they are computed, or of the one that ``reads`` pins."""
    struct = None
    if not options:
        # An older snapshot may have other columns, so only the newest one is read with this schema.
        struct = struct_of(table.schema, needed_columns(table, query))
        pin = reads.pinned.get(table.name)
        snapshot_id = state.pinned.get(table.name) if pin is None else pin.snapshot_id
        if pin is not None and pin.tag is not None:
            options = {statement_options.TAG_NAME: pin.tag}
        elif snapshot_id:
            options = {statement_options.SNAPSHOT_ID: str(snapshot_id)}
        elif pin is not None:
            return fresh_frame(state.spark, struct, statement_options.options_of(table)).where("false")
    return fresh_frame(state.spark, struct, {**statement_options.options_of(table), **options})


def _stream(
    state: SessionState, table: DynamicTable, query: Query, options: Mapping[str, str], reads: StreamReads
) -> DataFrame:
    struct = struct_of(
        table.schema,
        needed_columns(table, query),
        row_kind_column=table.new_read().stream_row_kind_column,
        has_position=reads.has_position or ROW_POSITION in query.words,
    )
    reader = state.spark.readStream.format(statement_options.SOURCE_NAME).schema(struct)
    return reader.options(**statement_options.options_of(table), **options).load()


def needed_columns(table: DynamicTable, query: Query) -> list[str]:
    """Return the columns that the query may need, from its tokens: Spark does not pass them to a Python source."""
    names = [each.name for each in table.schema.fields]
    if query.has_star:
        return names
    computed = " ".join(_computed(table, query).values()).lower()
    late = watermarks(table.schema.options)
    needed = [name for name in names if name.lower() in query.words or name.lower() in computed or name in late]
    return needed or names[:1]


def _allowed_computed(state: SessionState, table: DynamicTable, query: Query) -> dict[str, str]:
    """Return the computed columns, without those that a restricted session may not evaluate.

    Raises ``InvalidInputError`` if the query asks for one of these.
    """
    computed = _computed(table, query)
    for name, expression in list(computed.items()) if state.restricted else ():
        try:
            refuse_expression(state.spark, expression)
        except InvalidInputError as error:
            if name.lower() in query.words or (query.has_star and "*" in query.words):
                message = f"computed column {name!r} of table {table.name}: {error}"
                raise InvalidInputError(message) from error
            del computed[name]
    return computed


def _computed(table: DynamicTable, query: Query) -> dict[str, str]:
    """Return the computed columns that the query or a watermark may need, as name -> expression."""
    options = table.schema.options
    return {
        name: expression
        for name, expression in computed_columns(options).items()
        if query.has_star or name.lower() in query.words or name in watermarks(options)
    }
