"""Completion of a statement that is being typed: keywords, tables, columns and options.

Uses only the words before the cursor: an incomplete statement can't be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from storage_lib import Catalog
from storage_lib.errors import StorageError
from storage_lib.schema.options.table_options import option_keys
from storage_lib.table.inspect.system_table_schemas import SYSTEM_TABLES

_WORD = re.compile(r"[\w.$-]+$")
_OPTION = re.compile(r"'([\w.-]*)$")
_NAMES = re.compile(r"[\w-]+(?:\.[\w-]+)?")
_OPENING = (
    "ALTER MATERIALIZED TABLE",
    "ALTER TABLE",
    "ANALYZE TABLE",
    "CALL",
    "CREATE DATABASE",
    "CREATE MATERIALIZED TABLE",
    "CREATE TABLE",
    "CREATE TEMPORARY TABLE",
    "CREATE TEMPORARY VIEW",
    "DELETE FROM",
    "DESCRIBE",
    "DESCRIBE EXTENDED",
    "DROP DATABASE",
    "DROP MATERIALIZED TABLE",
    "DROP TABLE",
    "EXPLAIN",
    "EXPLAIN REFRESH",
    "INSERT INTO",
    "INSERT OVERWRITE",
    "MERGE INTO",
    "RESET",
    "SELECT",
    "SET",
    "SHOW COLUMNS FROM",
    "SHOW CREATE TABLE",
    "SHOW DATABASES",
    "SHOW MATERIALIZED TABLES",
    "SHOW OPTIONS",
    "SHOW PARTITIONS",
    "SHOW TABLES",
    "TRUNCATE TABLE",
    "UPDATE",
    "USE",
    "WITH",
)
_INSIDE = (
    "ADD COLUMN",
    "AND",
    "AS",
    "BY",
    "COMPACT",
    "DROP COLUMN",
    "DROP PARTITION",
    "FROM",
    "GROUP BY",
    "HAVING",
    "INTO",
    "JOIN",
    "LEFT JOIN",
    "LIMIT",
    "NOT ENFORCED",
    "ON",
    "OR",
    "ORDER BY",
    "PARTITION",
    "PARTITIONED BY",
    "PRIMARY KEY",
    "RENAME TO",
    "SET",
    "TIMESTAMP AS OF",
    "USING",
    "VALUES",
    "VERSION AS OF",
    "WATERMARK FOR",
    "WHEN MATCHED THEN",
    "WHEN NOT MATCHED THEN",
    "WHERE",
    "WITH",
)
_BEFORE_TABLES = frozenset(
    {"columns", "describe", "extended", "from", "into", "join", "overwrite", "partitions", "table", "update"}
)


class StatementCompleter(Completer):
    """Completes from a catalog's tables and columns, cached since the last call of ``refresh``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._database = ""
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def refresh(self, database: str) -> None:
        """Clear the cache, because a statement may have changed the catalog; set the current database."""
        self._database = database
        self._tables = None
        self._columns = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Yield the possible continuations at the cursor."""
        before = document.text_before_cursor
        option = _OPTION.search(before)
        if option is not None and before.count("'") % 2 == 1:
            yield from _starting(option.group(1), option_keys())
            return
        word = _WORD.search(before)
        typed = word.group(0) if word else ""
        ahead = before[: len(before) - len(typed)]
        yield from _starting(typed, self._candidates(ahead, typed))

    def _candidates(self, ahead: str, typed: str) -> Iterator[str]:
        statement = ahead.rpartition(";")[2]
        if not statement.strip():
            yield from _OPENING
            return
        if "$" in typed:
            table = typed.partition("$")[0]
            yield from (f"{table}${name}" for name in sorted(SYSTEM_TABLES))
            return
        if statement.split()[-1].lower() in _BEFORE_TABLES:
            yield from self._table_names()
            return
        yield from self._columns_of_named(statement)
        yield from self._table_names()
        yield from _INSIDE

    def _table_names(self) -> Iterator[str]:
        if self._tables is None:
            try:
                self._tables = self._catalog.list_tables()
            except StorageError:
                # The statement itself will report the error.
                self._tables = []
        for name in self._tables:
            database, _, table = name.partition(".")
            if database == self._database:
                yield table
        yield from self._tables

    def _columns_of_named(self, statement: str) -> Iterator[str]:
        known = set(self._table_names())
        for name in dict.fromkeys(_NAMES.findall(statement)):
            if name in known:
                yield from self._columns_of(name if "." in name else f"{self._database}.{name}")

    def _columns_of(self, table: str) -> list[str]:
        if table not in self._columns:
            try:
                self._columns[table] = [each.name for each in self._catalog.load_table(table).schema.fields]
            except StorageError:
                self._columns[table] = []
        return self._columns[table]


def _starting(typed: str, candidates: Iterable[str]) -> Iterator[Completion]:
    """Yield the candidates that start with ``typed``, each once; keywords in the letter case of ``typed``."""
    for candidate in dict.fromkeys(candidates):
        if candidate.lower().startswith(typed.lower()) and candidate != typed:
            text = candidate.lower() if candidate.isupper() and typed.islower() else candidate
            yield Completion(text, start_position=-len(typed))
