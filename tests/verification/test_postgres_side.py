"""A table is compared with a real PostgreSQL: values of all types, one snapshot, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from local_postgres import LocalPostgres
from storage_lib import DynamicTable, open_catalog, verify
from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.io.environment import new_uuid
from storage_lib.verification.postgres_side import PostgresSide
from tests.support.deep_tests import thinned
from tests.support.extras import needed
from tests.support.planted_differences import TYPES, Planted, planted
from tests.verification.test_random_verifications import check, table_of

pytestmark = [pytest.mark.postgres, pytest.mark.integration]

WIDE = (
    ("id", "bigint", "BIGINT NOT NULL", "9007199254740993"),
    ("small", "smallint", "SMALLINT", "-32768"),
    ("flag", "boolean", "BOOLEAN", "true"),
    ("price", "numeric(12,4)", "DECIMAL(12, 4)", "9.5000"),
    ("any_number", "numeric", "DECIMAL(38, 10)", "-0.0000000001"),
    ("rounded", "numeric", "DOUBLE", "0.1"),
    ("real", "real", "FLOAT", "0.1"),
    ("double", "double precision", "DOUBLE", "NaN"),
    ("name", "text", "STRING", "Ärger 'x'\\n\""),
    ("code", "char(6)", "CHAR(6)", "ab"),
    ("short", "varchar(9)", "VARCHAR(9)", ""),
    ("raw", "bytea", "BYTES", "\\x00ff10"),
    ("day", "date", "DATE", "0044-03-15"),
    ("hour", "time", "TIME(3)", "23:59:59.999"),
    ("at", "timestamp", "TIMESTAMP(6)", "1969-12-31 23:59:59.999999"),
    ("instant", "timestamptz", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "2024-05-14 12:00:00.000001+02"),
    ("mood", "mood", "STRING", "happy"),
    ("uuid", "uuid", "STRING", "0b1e0f0a-9f4a-4e6a-9b56-fd4b0f6e0a11"),
    ("doc", "jsonb", "STRING", '{"a": 1}'),
    ("postcode", "postcode", "STRING", "12345"),
    ("numbers", "integer[]", "ARRAY<BIGINT>", "[0:2]={1,NULL,-3}"),
    ("prices", "numeric(9,2)[]", "ARRAY<DECIMAL(9, 2)>", "{1.50,NULL}"),
    ("words", "varchar(9)[]", "ARRAY<STRING>", '{"a\\"b",NULL,"null",""}'),
    ("moods", "mood[]", "ARRAY<STRING>", "{sad,happy}"),
    ("days", "date[]", "ARRAY<DATE>", "{2024-05-14,NULL}"),
    ("moments", "timestamptz[]", "ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>", "{2024-05-14 12:00:00+02}"),
    ("flags", "boolean[]", "ARRAY<BOOLEAN>", "{}"),
    ("raws", "bytea[]", "ARRAY<BYTES>", '{"\\\\x00ff"}'),
    ("doubles", "double precision[]", "ARRAY<DOUBLE>", "{NaN,-0,Infinity}"),
)
"""Column, PostgreSQL's type, the table's type, and a value as PostgreSQL's text."""
STORED: dict[str, Any] = {
    "id": 9007199254740993,
    "small": -32768,
    "flag": True,
    "price": Decimal("9.5"),
    "any_number": Decimal("-0.0000000001"),
    "rounded": 0.1,
    "real": 0.1,
    "double": math.nan,
    "name": "Ärger 'x'\\n\"",
    "code": "ab",
    "short": "",
    "raw": b"\x00\xff\x10",
    "day": date(44, 3, 15),
    "hour": time(23, 59, 59, 999_000),
    "at": datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001  a local time
    "instant": datetime(2024, 5, 14, 10, 0, 0, 1, tzinfo=UTC),
    "mood": "happy",
    "uuid": "0b1e0f0a-9f4a-4e6a-9b56-fd4b0f6e0a11",
    "doc": '{"a": 1}',
    "postcode": "12345",
    "numbers": [1, None, -3],
    "prices": [Decimal("1.5"), None],
    "words": ['a"b', None, "null", ""],
    "moods": ["sad", "happy"],
    "days": [date(2024, 5, 14), None],
    "moments": [datetime(2024, 5, 14, 10, tzinfo=UTC)],
    "flags": [],
    "raws": [b"\x00\xff"],
    "doubles": [math.nan, 0.0, math.inf],
}
OTHER = {
    "flag": "false",
    "raw": "\\x00",
    "mood": "sad",
    "uuid": "1b1e0f0a-9f4a-4e6a-9b56-fd4b0f6e0a11",
    "doc": "{}",
    "postcode": "99999",
    "name": "other",
    "code": "abc",
    "short": " ",
    "day": "0044-03-16 BC",
    "hour": "00:00:00.001",
    "at": "1970-01-01",
    "instant": "2024-05-14 12:00:00.000002+02",
    "numbers": "{1,-3}",
    "prices": "{1.51,NULL}",
    "words": "{}",
    "moods": "{happy,sad}",
    "days": "{2024-05-14,2024-05-15}",
    "moments": "{infinity}",
    "flags": "{NULL}",
    "raws": "{NULL}",
    "doubles": "{0,Infinity}",
}


class Database:
    """A schema of its own in the session's server."""

    def __init__(self, uri: str, name: str) -> None:
        import psycopg

        self.uri = f"{uri}?options=-csearch_path%3D{name}"
        self._connection = psycopg.connect(uri, autocommit=True)
        self.run(f"CREATE SCHEMA {name}")
        self.run(f"SET search_path = {name}")

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values or None)

    def load(self, table: str, made: Planted) -> None:
        """Make a table with the source's rows, under types that have their values."""
        import psycopg

        types = {name: made.chance.choice(TYPES[kind].postgres) for name, kind in made.kinds.items()}
        self.run(f"CREATE TABLE {table} ({', '.join(f'{name} {type_}' for name, type_ in types.items())})")
        assert isinstance(self._connection, psycopg.Connection)
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in made.source:
                copy.write_row([row[name] for name in made.kinds])

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def database(postgres: LocalPostgres) -> Iterator[Database]:
    needed("adbc_driver_postgresql")
    found = Database(postgres.uri, f"verified_{new_uuid().replace('-', '')}")
    yield found
    found.close()


@pytest.fixture
def wide(database: Database, tmp_path: Path) -> DynamicTable:
    """A table with one row of all types, which the database also has."""
    database.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    database.run("CREATE DOMAIN digits AS text CHECK (VALUE ~ '^[0-9]+$')")
    database.run("CREATE DOMAIN postcode AS digits CHECK (length(VALUE) = 5)")
    columns = ", ".join(f'"{name}" {type_}' for name, type_, _, _ in WIDE)
    database.run(f"CREATE TABLE wide ({columns})")
    values = [value for *_, value in WIDE]
    database.run(f"INSERT INTO wide VALUES ({', '.join('%s' for _ in WIDE)})", *values)  # noqa: S608
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    table = catalog.create_table("shop.wide", {name: type_ for name, _, type_, _ in WIDE}, primary_key=["id"])
    row = pa.table({name: [value] for name, value in STORED.items()}, schema=table.arrow_schema)
    table.append(row)
    return table


def test_values_of_all_types_equal_those_of_the_database(wide: DynamicTable, database: Database) -> None:
    found = verify(wide, database.uri)

    assert found.is_equal, found.differences
    assert found.table_rows == found.source_rows == 1
    assert found.source_position.startswith("WAL position ")


@pytest.mark.parametrize("column", [name for name, *_ in WIDE if name != "id"])
def test_another_value_of_any_type_is_a_difference(column: str, wide: DynamicTable, database: Database) -> None:
    other = OTHER.get(column, "7")
    database.run(f'UPDATE wide SET "{column}" = %s', other)  # noqa: S608
    changed = verify(wide, database.uri)
    database.run(f'UPDATE wide SET "{column}" = NULL')  # noqa: S608
    without = verify(wide, database.uri)

    for found in (changed, without):
        assert (found.different, found.columns) == (1, {column: 1})
        assert found.differences[0].key == {"id": 9007199254740993}


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
def test_infinite_dates_and_times_are_named(value: str, wide: DynamicTable, database: Database) -> None:
    database.run("UPDATE wide SET day = %s, at = %s, instant = %s", value, value, value)

    found = verify(wide, database.uri)

    assert found.columns == {"day": 1, "at": 1, "instant": 1}
    assert found.differences[0].source_values == {"day": value, "at": value, "instant": value}


@pytest.mark.parametrize("seed", thinned(range(24), 2))
def test_planted_differences_are_found_in_a_database(seed: int, database: Database, tmp_path: Path) -> None:
    chance = Random(seed)  # noqa: S311  reproducible
    made = planted(chance, row_count=1500, difference_count=chance.choice((0, 5)))
    table = table_of(made, tmp_path, chance)
    database.load("orders", made)

    found = verify(table, database.uri, limit=10_000, memory=chance.choice((5_000, 40_000, 1 << 28)))

    check(made, found)


def test_a_connection_that_ends_during_the_comparison_may_be_tried_again(
    wide: DynamicTable, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("UPDATE wide SET small = 1")
    read = PostgresSide.batches

    def ending(self: PostgresSide, *given: Any) -> Any:
        yield from read(self, *given)
        database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE 'COPY (%' AND pid <> pg_backend_pid()"
        )

    monkeypatch.setattr(PostgresSide, "batches", ending)

    with pytest.raises(UnavailableError, match="not available, or ended the read"):
        verify(wide, database.uri)


def test_arrays_of_several_dimensions_are_refused(wide: DynamicTable, database: Database) -> None:
    database.run("UPDATE wide SET numbers = '{{1,2},{3,4}}'")

    with pytest.raises(InvalidInputError, match="is an array of several dimensions"):
        verify(wide, database.uri)


def test_rows_of_a_query_are_compared(wide: DynamicTable, database: Database) -> None:
    query = "SELECT id, upper(name) AS name FROM wide WHERE id > 0 -- all"

    found = verify(wide, database.uri, query=query, columns=["id", "name"])

    assert found.columns == {"name": 1}
    assert found.source == database.uri.partition("?")[0]


def test_a_change_during_the_comparison_is_not_seen(
    wide: DynamicTable, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first read finds a difference, after which the database changes; the second one reads the same rows."""
    database.run("UPDATE wide SET small = 1")
    read = PostgresSide.batches

    def changing(self: PostgresSide, *given: Any) -> Any:
        yield from read(self, *given)
        database.run("UPDATE wide SET small = -32768, name = 'changed'")

    monkeypatch.setattr(PostgresSide, "batches", changing)

    found = verify(wide, database.uri)

    assert found.columns == {"small": 1}
    assert found.differences[0].source_values == {"small": 1}


def test_a_relation_is_a_name_of_a_users_table_whatever_the_server_is_set_to(
    wide: DynamicTable, database: Database
) -> None:
    """Forms may contain it."""
    older = f"{database.uri}%20-cstandard_conforming_strings%3Doff"

    assert verify(wide, older, relation="wide").is_equal
    with pytest.raises((NotFoundError, InvalidInputError), match=r"has no table|refuses the read"):
        verify(wide, older, relation="\\') OR c.relname = $$wide$$ --")
    with pytest.raises(NotFoundError, match=r"has no table pg_catalog\.pg_class of users"):
        verify(wide, database.uri, relation="pg_catalog.pg_class")


def test_what_cannot_be_compared_is_refused(wide: DynamicTable, database: Database) -> None:
    database.run("ALTER TABLE wide ADD COLUMN span interval, DROP COLUMN mood")

    with pytest.raises(InvalidInputError, match=r"wide has no column 'span', which wide has|has no column 'mood'"):
        verify(wide, database.uri)
    with pytest.raises(NotFoundError, match="PostgreSQL has no table nothing"):
        verify(wide, database.uri, relation="nothing")
    with pytest.raises(InvalidInputError, match=r"PostgreSQL refuses the read: .*no_column"):
        verify(wide, database.uri, query="SELECT no_column FROM wide")
    with pytest.raises(InvalidInputError, match=r"PostgreSQL refuses the read: .*division by zero"):
        verify(wide, database.uri, query="SELECT id, 1 / (id - id) AS small FROM wide", columns=["id", "small"])
    with pytest.raises(InvalidInputError, match="columns of the same name: id, id"):
        verify(wide, database.uri, query="SELECT id, id FROM wide")
    with pytest.raises(
        InvalidInputError, match=r"column id of postgresql://dynamic@.* can't be compared: .*a query that casts it"
    ):
        verify(wide, database.uri, query="SELECT interval '1 day' AS id", columns=["id"])
    with pytest.raises(
        InvalidInputError,
        match=r"column id of shop.wide .* its values are of kind integer, and those of .* of kind bytes",
    ):
        verify(wide, database.uri, query="SELECT ''::bytea AS id", columns=["id"])
    with pytest.raises(UnavailableError, match="is not available"):
        verify(wide, "postgresql://nobody:hidden@127.0.0.1:1/nothing")


def test_rows_that_a_policy_hides_are_refused_instead_of_counted_as_missing(
    wide: DynamicTable, database: Database
) -> None:
    role = f"reader_{new_uuid().replace('-', '')}"
    database.run(f"CREATE ROLE {role} LOGIN")
    database.run("ALTER TABLE wide ENABLE ROW LEVEL SECURITY")
    database.run(f"GRANT SELECT ON wide TO {role}")
    schema = database.uri.rpartition("%3D")[2]
    database.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")

    with pytest.raises(InvalidInputError, match="row-level security"):
        verify(wide, database.uri.replace("//dynamic@", f"//{role}@"))
