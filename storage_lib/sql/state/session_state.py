"""State of a session, shared by the runners of its statements: name resolution, settings, views."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_precedence import merged_options
from storage_lib.spark.runtime.restricted_sql import refuse_commands, refuse_statement
from storage_lib.sql.state.session_catalogs import SessionCatalog
from storage_lib.sql.state.settings import SessionSettings
from storage_lib.sql.state.temporary_tables import TemporaryTables
from storage_lib.sql.statements.parts import NamedTable
from storage_lib.sql.statements.table_statements import CreateView
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.catalog.views.view import View
    from storage_lib.table.dynamic_table import DynamicTable

DEFAULT_DATABASE = "default"
DEFAULT_CATALOG = "dynamic_tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewText:
    """A temporary view: its statement, and the text to which the statement's offsets refer."""

    statement: CreateView
    source: SourceText


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitIdentity:
    """Commit identity given by the caller (None: not given): the same pair commits once."""

    user: str | None = None
    identifier: int | None = None


@dataclass
class SessionState:
    """State of one session. Not thread-safe.

    ``pinned``: snapshots, by table name, that queries without a hint read (0: the empty table). ``restricted``: the SQL
    is untrusted and may only read tables (``restricted_sql``).
    """

    spark: SparkSession
    catalog: Catalog
    catalog_name: str = DEFAULT_CATALOG
    database: str = DEFAULT_DATABASE
    settings: SessionSettings = field(default_factory=SessionSettings)
    views: dict[str, ViewText] = field(default_factory=dict)
    catalogs: dict[str, SessionCatalog] = field(default_factory=dict)
    temporary: TemporaryTables = field(default_factory=TemporaryTables)
    pinned: dict[str, int] = field(default_factory=dict)
    identity: CommitIdentity = field(default_factory=CommitIdentity)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    restricted: bool = False

    @contextmanager
    def committing_as(self, identity: CommitIdentity) -> Iterator[None]:
        """Use this identity for commits in the body."""
        self.identity = identity
        try:
            yield
        finally:
            self.identity = CommitIdentity()

    def use(self, database: str) -> None:
        """Make ``database`` the current database, in which names without a database are resolved."""
        self.database = database

    def full_name(self, parts: Sequence[str]) -> str:
        """Return ``database.table`` for a name of one to three parts; ``NotFoundError`` for another catalog."""
        if len(parts) == 3:
            if parts[0] in self.catalogs:
                message = (
                    f"{'.'.join(parts)} is a table of catalog {parts[0]}, which queries read; name a table of the "
                    f"session's own catalog, {self.catalog_name}"
                )
                raise NotFoundError(message)
            if parts[0] != self.catalog_name:
                known = f"; CREATE CATALOG opened {', '.join(self.catalogs)}" if self.catalogs else ""
                message = f"unknown catalog {parts[0]!r}; this session's catalog is {self.catalog_name!r}{known}"
                raise NotFoundError(message)
            parts = parts[1:]
        return ".".join(parts) if len(parts) == 2 else f"{self.database}.{parts[0]}"

    def view(self, parts: Sequence[str]) -> ViewText | None:
        """Return the temporary view of that name; None if it does not exist."""
        return self.views.get(parts[0].lower()) if len(parts) == 1 else None

    def session_catalog(self, parts: Sequence[str]) -> SessionCatalog | None:
        """Return the catalog that the session opened and a name of three parts begins with; None if there is none."""
        return self.catalogs.get(parts[0]) if len(parts) == 3 else None

    def opened_catalog(self, name: str) -> SessionCatalog:
        """Return a catalog that the session opened. Raises ``NotFoundError`` if there is none of that name."""
        if name not in self.catalogs:
            near = did_you_mean(name, [self.catalog_name, *self.catalogs])
            message = f"catalog {name} does not exist{near}; CREATE CATALOG opens one"
            raise NotFoundError(message)
        return self.catalogs[name]

    def lake_options(self) -> dict[str, dict[str, str]]:
        """Return the options, secrets included, of the catalogs of other formats that the session opened."""
        return {name: dict(each.options) for name, each in self.catalogs.items() if each.lake is not None}

    def find_stored_view(self, parts: Sequence[str]) -> View | None:
        """Return the view that the catalog stores under that name; None if it does not exist or the name is none."""
        try:
            name = TableName.parse_plain(self.full_name(parts))
        except (InvalidInputError, NotFoundError):
            return None
        return self.catalog.views.find(str(name))

    def home_of(self, parts: Sequence[str]) -> tuple[Catalog, str] | None:
        """Return the catalog of a table and its full name, including a ``$`` suffix; None if it does not exist."""
        if len(parts) == 1:
            temporary = self.temporary.home_of(parts[0])
            if temporary is not None:
                return temporary
        try:
            name = TableName.parse(self.full_name(parts))
        except (InvalidInputError, NotFoundError):
            return None
        return (self.catalog, str(name)) if self.catalog.table_exists(str(name.plain)) else None

    def load(self, named: NamedTable) -> DynamicTable:
        """Load a table. Raises ``NotFoundError`` with the nearest name, ``InvalidInputError`` for a view."""
        table = self.find(named)
        if table is None:
            raise self.not_found(named.parts)
        return table

    def find(self, named: NamedTable) -> DynamicTable | None:
        """Load a table; None if it does not exist."""
        home = self.home_of(named.parts)
        if home is None:
            return None
        catalog, name = home
        return catalog.load_table(name)

    def not_found(self, parts: Sequence[str]) -> NotFoundError | InvalidInputError:
        """Return the error for a name that is not a dynamic table: missing, a view, or a Spark table."""
        if self.view(parts) is not None:
            return InvalidInputError(f"{parts[0]} is a temporary view, which can only be read; name a table")
        if self.find_stored_view(parts) is not None:
            return InvalidInputError(f"{'.'.join(parts)} is a view, which can only be read; name a table")
        if self.is_sparks(parts):
            message = f"{'.'.join(parts)} is a Spark table, which can only be read, inserted into and dropped here"
            return InvalidInputError(message)
        name = self.full_name(parts)
        database, _, table = name.rpartition(".")
        stored = [*self.catalog.list_tables(database), *self.catalog.views.names(database)]
        there = [each.partition(".")[2] for each in stored]
        if len(parts) == 1:
            there += [*self.temporary.names(), *self.views]
        near = did_you_mean(table, there)
        return NotFoundError(f"table {name} does not exist{near}")

    def is_sparks(self, parts: Sequence[str]) -> bool:
        """Return whether Spark's own catalog has a table of that name."""
        try:
            return self.spark.catalog.tableExists(".".join(f"`{part.replace('`', '``')}`" for part in parts))
        except PySparkException:  # not a valid name for Spark
            return False

    def options_in_effect(self, table: DynamicTable, hint: Mapping[str, str]) -> dict[str, str]:
        """Return options by canonical keys: from the statement's hint, else the table, else this session.

        Connection options and defaults have lower precedence and are not included; they are in ``table.options``.
        """
        return merged_options(hint=hint, table=table.schema.options, session=self.settings.table_options)

    def analysed(self, text: str) -> DataFrame:
        """Let Spark analyse a query; ``InvalidInputError`` if a restricted session may not run it."""
        if self.restricted:
            refuse_statement(self.spark, text)
        df = self.spark.sql(text)
        if self.restricted:
            refuse_commands(df)
        return df

    def new_view_name(self) -> str:
        """Return a unique name for a Spark view."""
        return f"dynamic_table_{id(self)}_{next(self.numbers)}"
