"""A catalog in a database: its tables as Paimon's JDBC catalog sees them, connections, and hidden secrets."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from local_postgres import LocalPostgres
from storage_lib import InvalidInputError, UnavailableError, open_catalog
from tests.support.catalog_homes import CatalogHome, catalog_home
from tests.support.extras import needs
from tests.support.other_readers import create_with_pypaimon, needs_pypaimon, read_with_pypaimon

pytestmark = needs("sqlalchemy")

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "item": ["pen", "ink"]})


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    return catalog_home("sqlite", request, tmp_path)


@needs_pypaimon
def test_paimon_s_catalogs_read_our_table_and_we_read_theirs(home: CatalogHome, tmp_path: Path) -> None:
    jdbc = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": home.warehouse}
    home.open().create_table("shop.orders", ROWS.schema, primary_key=["id"]).append(ROWS)

    create_with_pypaimon(jdbc, "shop.items", tmp_path, ROWS, primary_keys=["id"], options={"bucket": "1"})

    assert read_with_pypaimon(jdbc, "shop.orders", tmp_path).sort_by("id").to_pylist() == ROWS.to_pylist()
    assert read_with_pypaimon(Path(home.warehouse), "shop.orders", tmp_path).num_rows == 2
    assert home.open().list_tables() == ["shop.items", "shop.orders"]
    assert home.open().load_table("shop.items").to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()
    home.open().rename_table("shop.orders", "shop.purchases")
    assert read_with_pypaimon(jdbc, "shop.purchases", tmp_path).num_rows == 2
    home.open().drop_table("shop.items")
    assert home.open().list_tables() == ["shop.purchases"]


@needs_pypaimon
def test_a_catalog_that_paimon_made_is_gone_on_with(home: CatalogHome, tmp_path: Path) -> None:
    jdbc = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": home.warehouse}
    create_with_pypaimon(jdbc, "shop.items", tmp_path, ROWS, primary_keys=["id"], options={"bucket": "1"})

    home.open().create_table("shop.orders", ROWS.schema, primary_key=["id"]).append(ROWS)

    assert home.open().list_tables() == ["shop.items", "shop.orders"]
    assert read_with_pypaimon(jdbc, "shop.orders", tmp_path).num_rows == 2


def test_catalogs_in_one_database_are_told_apart_by_their_key(home: CatalogHome) -> None:
    home.open().create_table("shop.orders", {"id": "INT"})

    other = open_catalog(f"{home.warehouse}-2", {**home.options, "catalog-key": "other", "log.system": "none"})

    assert other.list_tables() == []
    assert other.list_databases() == []
    other.create_table("shop.orders", {"id": "INT"})
    assert home.open().load_table("shop.orders").location != other.load_table("shop.orders").location


def test_a_table_has_the_place_that_its_database_names(home: CatalogHome, tmp_path: Path) -> None:
    home.open().create_database("shop", {"location": f"file:{tmp_path}/elsewhere"})

    table = home.open().create_table("shop.orders", {"id": "INT"})

    assert table.location == f"{tmp_path}/elsewhere/orders"
    assert home.open().load_table("shop.orders").location == table.location


def test_a_postgres_is_reached_by_each_spelling(postgres: LocalPostgres, tmp_path: Path) -> None:
    plain = postgres.uri.replace("dynamic@", "")
    for number, options in enumerate(
        (
            {"metastore": "sql", "uri": postgres.uri},
            {"metastore": "jdbc", "uri": f"jdbc:{plain}", "jdbc.user": "dynamic", "jdbc.password": "any"},
        )
    ):
        catalog = open_catalog(str(tmp_path), {**options, "catalog-key": "spelled", "log.system": "none"})
        catalog.create_table(f"shop.t{number}", {"id": "INT"})

    assert catalog.list_tables() == ["shop.t0", "shop.t1"]


def test_a_relative_warehouse_is_the_same_directory_for_processes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"metastore": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "log.system": "none"}
    table = open_catalog("lake", options).create_table("d.t", {"id": "BIGINT"})
    table.append([{"id": 1}])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    found = open_catalog(str(tmp_path / "lake"), options).load_table("d.t")

    assert (found.location, found.to_arrow().num_rows) == (str(tmp_path / "lake/d.db/t"), 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"metastore": "sql"}, "needs option uri"),
        ({"metastore": "sql", "uri": "no url"}, "not the URL of a database"),
        ({"metastore": "sql", "uri": "oracel://user:hush@host/db"}, "no database driver supports it"),
        ({"metastore": "glue"}, "has to be one of filesystem, hive, jdbc, memory, sql"),
        ({"metastore": "sql", "uri": "sqlite://", "lock.timeout": "soon"}, r"lock\.timeout is 'soon'"),
    ],
)
def test_settings_that_name_no_catalog_are_refused(tmp_path: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told) as refused:
        open_catalog(str(tmp_path), options)
    assert "hush" not in str(refused.value)


def test_a_database_that_does_not_answer_is_worth_another_try_and_its_password_stays_secret(tmp_path: Path) -> None:
    options = {"metastore": "sql", "uri": "postgresql://me:hush@127.0.0.1:1/db"}

    with pytest.raises(UnavailableError, match=r"//me:\*+@127\.0\.0\.1:1/db does not answer") as refused:
        open_catalog(str(tmp_path), options)
    assert "hush" not in str(refused.value)


def test_what_reaches_the_catalog_is_not_stored_and_not_shown(home: CatalogHome, tmp_path: Path) -> None:
    options = {**home.options, "log.system": "none", "jdbc.password": "hush"}
    table = open_catalog(home.warehouse, options).create_table("shop.orders", {"id": "INT"})
    address = str(table.address)

    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hush" not in stored
    assert b"metastore" not in (Path(table.location) / "schema" / "schema-0").read_bytes()
    assert "hush" not in f"{address} {table.address!r} {table.describe()}"
    for key in ("metastore", "uri", "catalog-key", "jdbc.user", "lock.enabled"):
        with pytest.raises(InvalidInputError, match="configures the catalog"):
            home.open().create_table("shop.more", {"id": "INT"}, options={key: "x"})


def test_a_password_in_a_uri_is_masked_wherever_options_are_shown(tmp_path: Path) -> None:
    from storage_lib.schema.options.table_options import masked

    assert masked({"uri": "postgresql://me:hush@host/db"}) == {"uri": "postgresql://me:******@host/db"}


def test_the_tables_are_those_of_paimons_jdbc_catalog(home: CatalogHome, tmp_path: Path) -> None:
    home.open().create_table("shop.orders", {"id": "INT"})

    with sqlite3.connect(tmp_path / "catalog.db") as database:
        rows = database.execute("SELECT catalog_key, database_name, table_name FROM paimon_tables").fetchall()
        properties = dict(database.execute("SELECT property_key, property_value FROM paimon_database_properties"))
        locks = database.execute("SELECT lock_id, acquired_at, expire_time_seconds FROM paimon_distributed_locks")
        assert locks.fetchall() == []
    database.close()

    assert rows == [("jdbc", "shop", "orders")]
    assert properties == {"exists": "true", "location": f"{home.warehouse}/shop.db"}


@pytest.mark.parametrize("uri", ["postgresql://ann:s3s@me-open@127.0.0.1:1/db", "postgresql://ann:s@me@open@h/db"])
def test_a_password_with_an_at_sign_is_refused_before_its_rest_is_looked_up_as_a_host(tmp_path: Path, uri: str) -> None:
    with pytest.raises(InvalidInputError, match="write it as %40") as refused:
        open_catalog(str(tmp_path), {"metastore": "jdbc", "uri": uri}).list_tables()

    assert "open" not in str(refused.value).replace("open_catalog", "")
