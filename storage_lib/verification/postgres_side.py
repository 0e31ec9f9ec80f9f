"""A table or query of PostgreSQL as a side of a comparison.

All reads are of one transaction with one snapshot of the database, which never changes the database. PostgreSQL sends
Arrow's columns through ADBC; it converts types that ADBC lacks to text, and times to microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, NotFoundError, StorageError, UnavailableError
from storage_lib.schema.options.secret_text import without_password
from storage_lib.verification.column_kind import ArrayKind, ColumnKind
from storage_lib.verification.compared_rows import KeyBounds
from storage_lib.verification.sql_text import bare_query, literal, quoted
from storage_lib.verification.value_kind import ValueKind

SCHEMES = ("postgresql://", "postgres://")
_OLDEST = 140_000
"""PostgreSQL 14 was the first whose ``extract`` is exact."""
_FIRST_OF_USERS = 16_384
"""Tables with smaller numbers are PostgreSQL's own, such as those with passwords and other sessions' queries."""
_UNDEFINED_TABLE = "42P01"
_REFUSED = "XX000"
_OF_SERVER = "ERROR:"
_ENDED = re.compile("canceling statement|terminating connection|shutting down|conflict with recovery")
_CANCELLED_OR_DOWN = ("08", "53", "57", "58")

_BASE_TYPES = """
WITH RECURSIVE given(name, place, id) AS (VALUES {values}),
based(name, place, id, is_array, depth) AS (
    SELECT name, place, id, false, 0 FROM given
    UNION ALL
    SELECT name, place, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END, is_array OR t.typtype <> 'd',
           depth + 1
    FROM based JOIN pg_type t ON t.oid = based.id
    WHERE t.typtype = 'd' OR (t.typcategory = 'A' AND t.typelem <> 0 AND NOT is_array)
)
SELECT DISTINCT ON (place) name, typname::text, typtype::text, is_array
FROM based JOIN pg_type t ON t.oid = based.id
ORDER BY place, depth DESC
"""
"""The names and types of columns: the base type of a domain, and the type of an array's elements."""

_INFINITY = 9_223_372_036_854_775_807
_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), ValueKind.INTEGER),
    **dict.fromkeys(("text", "varchar", "name", "uuid", "json", "jsonb", "xml", "citext"), ValueKind.TEXT),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8", "ltree", "bit", "varbit"), ValueKind.TEXT),
    **dict.fromkeys(("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"), ValueKind.TEXT),
    "bool": ValueKind.BOOLEAN,
    "numeric": ValueKind.DECIMAL,
    "float4": ValueKind.FLOAT,
    "float8": ValueKind.DOUBLE,
    "bpchar": ValueKind.PADDED_TEXT,
    "bytea": ValueKind.BYTES,
    "date": ValueKind.DATE,
    "time": ValueKind.TIME,
    "timestamp": ValueKind.TIMESTAMP,
    "timestamptz": ValueKind.TIMESTAMP,
}
_ENUM = "e"
_SENT_AS = {
    ValueKind.BOOLEAN: "{column}",
    ValueKind.INTEGER: "{column}::int8",
    ValueKind.FLOAT: "{column}",
    ValueKind.DOUBLE: "{column}",
    ValueKind.DECIMAL: "{column}::text",
    ValueKind.TEXT: "{column}::text",
    ValueKind.PADDED_TEXT: "{column}::text",
    ValueKind.BYTES: "{column}",
    ValueKind.TIME: "(extract(epoch FROM {column}) * 1000000)::int8",
    ValueKind.DATE: "CASE WHEN isfinite({column}) THEN ({column} - DATE '1970-01-01')::int8 "
    f"WHEN {{column}} > DATE '1970-01-01' THEN {_INFINITY} WHEN {{column}} IS NOT NULL THEN -{_INFINITY} END",
    ValueKind.TIMESTAMP: "CASE WHEN isfinite({column}) THEN (extract(epoch FROM {column}) * 1000000)::int8 "
    f"WHEN {{column}} > DATE '1970-01-01' THEN {_INFINITY} WHEN {{column}} IS NOT NULL THEN -{_INFINITY} END",
}
"""Infinite dates and times are the largest and smallest number, which no finite one has."""
_ELEMENT_TYPES = {
    ValueKind.BOOLEAN: "bool",
    ValueKind.FLOAT: "float4",
    ValueKind.DOUBLE: "float8",
    ValueKind.DECIMAL: "text",
    ValueKind.TEXT: "text",
    ValueKind.PADDED_TEXT: "text",
    ValueKind.BYTES: "bytea",
}
"""Types as which the elements of arrays are sent, by default ``int8``."""


class PostgresSide:
    """Reads a table, view or query in one read-only transaction. Close it after use."""

    def __init__(self, uri: str, *, relation: str | None = None, query: str | None = None) -> None:
        with importing_for("a comparison with PostgreSQL", InvalidInputError, "postgres"):
            from adbc_driver_postgresql import dbapi
        self.name = without_password(uri).partition("?")[0] if relation is None else relation
        self._dbapi = dbapi
        with self._reporting():
            self._connection = dbapi.connect(uri)
        try:
            self.position = self._begin()
            self._rows = f"({bare_query(query)}) AS compared" if query is not None else self._relation(relation or "")
            self.kinds: Mapping[str, ColumnKind | None] = self._kinds_of_columns()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the transaction and the connection."""
        self._connection.close()

    def batches(self, forms: Mapping[str, ColumnKind], bounds: KeyBounds | None) -> Iterator[pa.RecordBatch]:
        """Read the columns of ``forms``; PostgreSQL sends only rows within the bounds."""
        columns = [f"{self._sent(name)} AS {quoted(name)}" for name in forms]
        where = "" if bounds is None else self._within(bounds)
        yield from self._read(f"SELECT {', '.join(columns)} FROM {self._rows}{where}")

    def _begin(self) -> str:
        """Fix the snapshot of all reads; return the position of the database's log then."""
        with self._reporting(), self._connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Otherwise a backslash in a name would end the literal before its quote.
            cursor.execute("SET LOCAL standard_conforming_strings = on")
            # Rows that a policy hides from this role would count as missing: PostgreSQL refuses such a read instead.
            cursor.execute("SET LOCAL row_security = off")
            cursor.execute("SET LOCAL extra_float_digits = 1")
        version, is_standby = self._row(
            "SELECT current_setting('server_version_num')::int8, pg_is_in_recovery() AS is_standby"
        )
        if version < _OLDEST:
            message = f"{self.name}: PostgreSQL {version // 10_000} is too old; a comparison needs version 14 or newer"
            raise InvalidInputError(message)
        function = "pg_last_wal_replay_lsn" if is_standby else "pg_current_wal_lsn"
        return f"WAL position {self._row(f'SELECT {function}()::text')[0]}"

    def _relation(self, name: str) -> str:
        found = self._rows_of(
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c "
            f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass({literal(name)}) "
            f"AND c.oid >= {_FIRST_OF_USERS}"
        )
        if not found:
            message = (
                f"PostgreSQL has no table {name} of users, or none that this role may see; name it as schema.table"
            )
            raise NotFoundError(message)
        return str(found[0][0])

    def _kinds_of_columns(self) -> dict[str, ColumnKind | None]:
        with self._reporting(), self._connection.cursor() as cursor:
            names = cursor.adbc_execute_schema(f"SELECT * FROM {self._rows}").names
        if len(set(names)) < len(names):
            message = f"the query returns columns of the same name: {', '.join(names)}; give each a name of its own"
            raise InvalidInputError(message)
        values = ", ".join(
            f"({literal(name)}, {place}, pg_typeof((SELECT {quoted(name)} FROM {self._rows} LIMIT 0))::oid)"
            for place, name in enumerate(names)
        )
        return {
            name: _kind(type_, family, is_array=is_array)
            for name, type_, family, is_array in self._rows_of(_BASE_TYPES.format(values=values))
        }

    def _sent(self, name: str) -> str:
        kind = self.kinds[name]
        column = quoted(name)
        if not isinstance(kind, ArrayKind):
            return _SENT_AS[cast("ValueKind", kind)].format(column=column)
        element = cast("ValueKind", kind.element)
        elements = f"unnest({column}) WITH ORDINALITY AS u(e, i) ORDER BY i"
        sent = f"ARRAY(SELECT {_SENT_AS[element].format(column='e')} FROM {elements})"
        # A conversion that fails: Arrow's lists have one dimension, and PostgreSQL's arrays any number.
        refused = f"(array_dims({column}) || ' is an array of several dimensions')::int8"
        type_ = _ELEMENT_TYPES.get(element, "int8")
        return (
            f"CASE WHEN {column} IS NULL THEN NULL WHEN array_ndims({column}) > 1 "
            f"THEN ARRAY[{refused}::text]::{type_}[] ELSE {sent} END"
        )

    def _within(self, bounds: KeyBounds) -> str:
        text = f'{quoted(bounds.column)}::text COLLATE "C"'
        parts = [
            f"{quoted(bounds.column) if isinstance(value, int) else text} {operator} {literal(value)}"
            for operator, value in ((">=", bounds.low), ("<=", bounds.high))
            if value is not None and "\0" not in str(value)  # a text of the other side; PostgreSQL has none
        ]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _row(self, query: str) -> tuple[Any, ...]:
        return self._rows_of(query)[0]

    def _rows_of(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that has few."""
        return [row for batch in self._read(query) for row in zip(*batch.to_pydict().values(), strict=True)]

    def _read(self, query: str) -> Iterator[pa.RecordBatch]:
        with self._reporting(), self._connection.cursor() as cursor:
            cursor.execute(query)
            yield from cursor.fetch_record_batch()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except self._dbapi.Error as error:
            raise _as_ours(self.name, str(error), error.sqlstate or "") from error
        except OSError as error:
            # What ends a read that has begun: Arrow passes on the text only.
            state = _REFUSED if _OF_SERVER in str(error) and not _ENDED.search(str(error)) else ""
            raise _as_ours(self.name, str(error), state) from error


def _as_ours(name: str, text: str, state: str) -> StorageError:
    """Return our error for one of PostgreSQL, whose SQLSTATE is ``state``, or of the connection, which has none."""
    said = without_password(text)
    if state == _UNDEFINED_TABLE:
        return NotFoundError(f"{name}: {said}")
    if not state or state.startswith(_CANCELLED_OR_DOWN):
        return UnavailableError(f"{name}: PostgreSQL is not available, or ended the read: {said}")
    return InvalidInputError(f"{name}: PostgreSQL refuses the read: {said}")


def _kind(type_: str, family: str, *, is_array: bool) -> ColumnKind | None:
    kind = ValueKind.TEXT if family == _ENUM else _KINDS.get(type_)
    return ArrayKind(kind) if is_array and kind is not None else kind
