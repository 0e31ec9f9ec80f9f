"""SQL session: runs statements given as text over a Spark session and a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from storage_lib.catalog.catalog import Catalog
from storage_lib.errors import InvalidInputError
from storage_lib.spark.data_source.table_source import register
from storage_lib.spark.reading.united_frames import leave_out_unsafe_rule
from storage_lib.spark.runtime.restricted_sql import restrict_sql
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.tasks.session_kind import refuse_connect
from storage_lib.sql.query.definition_query import definition_query
from storage_lib.sql.query.query_runner import dataframe_of
from storage_lib.sql.read.tree_reader import Statement, parse
from storage_lib.sql.run import run_catalogs, run_materialized, run_show_describe, run_table_statements, run_views
from storage_lib.sql.run.explain_refresh import run_explain_refresh
from storage_lib.sql.run.procedures import run_call
from storage_lib.sql.run.run_alter import run_alter_table
from storage_lib.sql.run.run_changes import run_analyze, run_delete, run_truncate, run_update
from storage_lib.sql.run.run_insert import run_insert
from storage_lib.sql.run.run_merge import run_merge
from storage_lib.sql.run.run_query import run_explain, run_select
from storage_lib.sql.run.run_settings import run_reset, run_set
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import DEFAULT_CATALOG, DEFAULT_DATABASE, CommitIdentity, SessionState
from storage_lib.sql.state.temporary_tables import TemporaryTables
from storage_lib.sql.statements import (
    alter_statements,
    materialized_statements,
    row_statements,
    show_describe,
    table_statements,
)
from storage_lib.sql.text.query_tables import quoted, read_query
from storage_lib.sql.text.script import statements_of
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Session(AbstractContextManager["Session"]):
    """Runs SQL statements, for one thread at a time. Several sessions may share a Spark session and a catalog.

        with Session(spark, open_catalog("warehouse")) as session:
            session.execute("CREATE TABLE shop.orders (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
            session.execute("SELECT * FROM shop.orders").to_arrow()

    ``database`` is the current database, ``catalog_name`` the first part of names with three parts. Temporary tables
    are in ``temporary_directory``, which all machines of a cluster have to reach (None: a new one on the local disk).
    ``restricted`` is for untrusted SQL: it allows only SELECT over tables, and restricts the Spark session permanently.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        *,
        database: str = DEFAULT_DATABASE,
        catalog_name: str = DEFAULT_CATALOG,
        temporary_directory: str | None = None,
        restricted: bool = False,
    ) -> None:
        refuse_connect(
            spark,
            "storage_lib.sql.Session",
            why="it reads Spark's plans of the queries",
            remedy="Use a classic session, or storage_lib.spark.read(...) and write(...)",
        )
        register(spark)
        leave_out_unsafe_rule(spark)
        if restricted:
            restrict_sql(spark)
        self._state = SessionState(
            spark=spark,
            catalog=catalog,
            catalog_name=catalog_name,
            database=database,
            temporary=TemporaryTables(temporary_directory),
            restricted=restricted,
        )

    @property
    def database(self) -> str:
        """The current database, for names without one."""
        return self._state.database

    @property
    def catalog(self) -> Catalog:
        """The catalog of the tables."""
        return self._state.catalog

    def settings(self) -> dict[str, str]:
        """Return the settings that SET shows, with secrets masked."""
        return dict(self._state.settings.shown(None, self._state.spark))

    def execute(self, text: str, *, commit_user: str | None = None, commit_identifier: int | None = None) -> Result:
        """Run one statement, with or without a final semicolon.

        ``commit_user`` and ``commit_identifier`` identify its commit: the same pair commits once.

        Raises ``SqlSyntaxError``, with the position and the expected tokens, before anything is done;
        ``InvalidInputError``, ``NotFoundError`` and ``AlreadyExistsError`` for its contents; and the errors of the
        operation that it runs.
        """
        sources = statements_of(text)
        if len(sources) > 1:
            second = sources[1]
            begin = len(second.text) - len(second.text.lstrip())
            raise second.syntax_error(begin, "one statement was expected; use execute_script for several")
        source = sources[0] if sources else SourceText(text=text)
        statement = parse(source.text, first_line=source.first_line)
        with self._state.committing_as(CommitIdentity(user=commit_user, identifier=commit_identifier)):
            return self._run(statement, source)

    def execute_script(self, text: str) -> Iterator[Result]:
        """Run statements one after the other, each when its result is requested; the first error ends the script.

        All statements are parsed before the first one runs.
        """
        parsed = [(parse(each.text, first_line=each.first_line), each) for each in statements_of(text)]
        return (self._run(statement, source) for statement, source in parsed)

    def stored_query(self, query: str, *, table: str) -> str:
        """Return the text that CREATE MATERIALIZED TABLE ``table`` would store for a query, as SHOW CREATE shows it.

        Raises the errors of that statement.
        """
        source = SourceText(text=query)
        with active_session(self._state.spark):
            return definition_query(self._state, read_query(source, 0, len(query)), source, table=table).text

    def register_views(self, database: str | None = None, *, snapshots: str = "newest") -> list[str]:
        """Register the tables and views of a database, and this session's views, as temporary views for ``spark.sql``.

        With ``snapshots`` "newest", each query reads the current content of a table, by Python tasks. With "fixed", all
        queries read the snapshots of this moment, whose files Spark's own readers read where rows need no merge; call
        this again to see newer ones. A recreated table has to be registered again.

        Raises ``InvalidInputError`` for another value of ``snapshots``.
        """
        if snapshots not in ("newest", "fixed"):
            message = f"unknown snapshots {snapshots!r}; use newest or fixed"
            raise InvalidInputError(message)
        state, is_live = self._state, snapshots == "newest"
        of_database = database or state.database
        stored = [*state.catalog.list_tables(of_database), *state.catalog.views.names(of_database)]
        names = [name.partition(".")[2] for name in stored]
        views = [str(view.statement.view) for view in state.views.values()]
        for name in names:
            self._register(name, f"{quoted(of_database)}.{quoted(name)}", is_live=is_live)
        for name in views:
            self._register(name, quoted(name), is_live=is_live)
        return sorted({*names, *views})

    def close(self) -> None:
        """Drop the temporary tables. Streams continue."""
        self._state.temporary.close()
        self._state.views.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        self.close()

    def _register(self, name: str, table: str, *, is_live: bool) -> None:
        source = SourceText(text=f"SELECT * FROM {table}")
        df = dataframe_of(
            self._state, read_query(source, 0, len(source.text)), source, streaming=False, is_live=is_live
        )
        df.createOrReplaceTempView(quoted(name))

    def _run(self, statement: Statement, source: SourceText) -> Result:
        if self._state.restricted and not isinstance(statement, row_statements.Select):
            message = f"only SELECT may be run here, not {type(statement).__name__}"
            raise InvalidInputError(message)
        with active_session(self._state.spark):
            run = _RUNNERS.get(type(statement))
            if run is not None:
                return run(self._state, statement)
            return _RUNNERS_WITH_TEXT[type(statement)](self._state, statement, source)


_RUNNERS: Mapping[type, Callable[[SessionState, Any], Result]] = {
    alter_statements.AlterTable: run_alter_table,
    show_describe.Describe: run_show_describe.run_describe,
    show_describe.DescribeDatabase: run_show_describe.run_describe_database,
    show_describe.ResetOption: run_reset,
    show_describe.SetOption: run_set,
    show_describe.ShowColumns: run_show_describe.run_show_columns,
    show_describe.ShowCreateTable: run_show_describe.run_show_create,
    show_describe.ShowCatalogs: run_catalogs.run_show_catalogs,
    show_describe.ShowDatabases: run_show_describe.run_show_databases,
    show_describe.ShowOptions: run_show_describe.run_show_options,
    show_describe.ShowPartitions: run_show_describe.run_show_partitions,
    show_describe.ShowTables: run_show_describe.run_show_tables,
    show_describe.ShowViews: run_views.run_show_views,
    show_describe.Use: run_show_describe.run_use,
    materialized_statements.DropMaterializedTable: run_materialized.run_drop_materialized,
    materialized_statements.ExplainRefresh: run_explain_refresh,
    materialized_statements.ShowCreateMaterializedTable: run_materialized.run_show_create_materialized,
    materialized_statements.ShowMaterializedTables: run_materialized.run_show_materialized,
    table_statements.CommentOnTable: run_table_statements.run_comment_on,
    table_statements.CreateCatalog: run_catalogs.run_create_catalog,
    table_statements.CreateDatabase: run_table_statements.run_create_database,
    table_statements.DropCatalog: run_catalogs.run_drop_catalog,
    table_statements.DropDatabase: run_table_statements.run_drop_database,
    table_statements.DropTable: run_table_statements.run_drop_table,
    table_statements.AlterView: run_views.run_alter_view,
    table_statements.DropView: run_views.run_drop_view,
    row_statements.Analyze: run_analyze,
    row_statements.Call: run_call,
    row_statements.Truncate: run_truncate,
}
_RUNNERS_WITH_TEXT: Mapping[type, Callable[[SessionState, Any, SourceText], Result]] = {
    materialized_statements.AlterMaterializedTable: run_materialized.run_alter_materialized,
    materialized_statements.CreateMaterializedTable: run_materialized.run_create_materialized,
    table_statements.CreateTable: run_table_statements.run_create_table,
    table_statements.CreateView: run_views.run_create_view,
    row_statements.Delete: run_delete,
    row_statements.Explain: run_explain,
    row_statements.Insert: run_insert,
    row_statements.Merge: run_merge,
    row_statements.Select: run_select,
    row_statements.Update: run_update,
}
"""Runners of statements that contain Spark SQL: they need the text to show the place of Spark's errors in it."""
