"""The command ``verify``: what it prints, its exit codes, and that it takes no password."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from storage_lib import open_catalog
from storage_lib.cli.app import app
from storage_lib.cli.sources.verify_command import DIFFERENT


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse with two tables that have the same two rows, next to two Parquet files with other ones."""
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.system": "none"})
    rows = pa.table({"id": [1, 2], "item": ["tea", "cup"]})
    for name in ("shop.orders", "shop.copy"):
        catalog.create_table(name, {"id": "BIGINT", "item": "STRING"}, primary_key=["id"]).append(rows)
    (tmp_path / "export").mkdir()
    pq.write_table(pa.table({"id": [1], "item": ["pot"]}), tmp_path / "export" / "0.parquet")
    pq.write_table(pa.table({"id": [3], "item": ["jar"]}), tmp_path / "export" / "1.parquet")
    return tmp_path / "warehouse"


def run(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["-w", str(warehouse), "verify", "shop.orders", *arguments])


def test_equal_tables_end_with_0(warehouse: Path) -> None:
    ran = run(warehouse, "--against", "shop.copy")

    assert ran.exit_code == 0, ran.output
    assert "shop.copy, snapshot 1: 2 rows" in ran.stdout
    assert "equal" in ran.stdout


def test_differences_end_with_3_and_are_named(warehouse: Path) -> None:
    ran = run(warehouse, "--against", f"{warehouse.parent}/export", "--json")

    assert ran.exit_code == DIFFERENT == 3, ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    assert (found["is_equal"], found["missing"], found["extra"], found["different"]) == (False, 1, 1, 1)
    assert found["differences"] == [
        {"kind": "missing", "key": {"id": 3}, "columns": ""},
        {"kind": "extra", "key": {"id": 2}, "columns": ""},
        {"kind": "different", "key": {"id": 1}, "columns": "item"},
    ]


def test_values_are_printed_only_on_request(warehouse: Path) -> None:
    against = ("--against", f"{warehouse.parent}/export/0.parquet")
    without, with_values = run(warehouse, *against), run(warehouse, *against, "--values")

    assert "pot" not in without.stdout
    assert "tea" not in without.stdout
    assert '{"item": "tea"}' in with_values.stdout
    assert '{"item": "pot"}' in with_values.stdout


def test_columns_and_differences_are_chosen(warehouse: Path) -> None:
    against = ("--against", f"{warehouse.parent}/export/0.parquet")

    limited = run(warehouse, *against, "--limit", "0", "--json")
    excluded = run(warehouse, *against, "-x", "item", "--json")
    chosen = run(warehouse, *against, "--columns", "id", "--json")

    assert json.loads(limited.stdout)["differences"] == []
    assert json.loads(limited.stdout)["extra"] == 1
    assert json.loads(excluded.stdout)["different"] == json.loads(chosen.stdout)["different"] == 0


@pytest.mark.parametrize(
    "address", ["postgresql://me:hidden@db/shop", "postgres://db/shop?password=hidden", "postgresql://me:hidden@db"]
)
def test_a_password_on_the_command_line_is_refused_and_not_printed(address: str, warehouse: Path) -> None:
    ran = run(warehouse, "--against", address)

    assert ran.exit_code == 1
    assert "PGPASSFILE" in ran.stderr
    assert "hidden" not in ran.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give what to compare it with"),
        (("--against", "shop.copy", "--query", "SELECT 1"), "a query is one of PostgreSQL"),
        (("--against", "shop.copy", "--relation", "orders"), "relation orders is a table of PostgreSQL"),
        (("--against", "./nothing-here"), "./nothing-here does not exist"),
        (("--against", "shop.nothing"), "shop.nothing"),
        (("--against", "shop.copy", "-x", "id"), "column id of the key can't be excluded"),
        (("--against", "shop.copy", "-c", "id,colour"), "has no column 'colour'"),
        (("--against", "shop.copy", "--snapshot", "9"), "9"),
    ],
)
def test_what_cannot_be_compared_ends_with_1(arguments: tuple[str, ...], said: str, warehouse: Path) -> None:
    ran = run(warehouse, *arguments)

    assert ran.exit_code == 1, ran.output
    assert said in ran.stderr


def test_all_tables_are_compared_and_an_error_stops_no_other(warehouse: Path) -> None:
    catalog = open_catalog(str(warehouse), {"log.system": "none"})
    for name in ("archive.orders", "archive.copy"):
        catalog.create_table(name, {"id": "BIGINT", "item": "STRING"}, primary_key=["id"])
    catalog.load_table("archive.orders").append(pa.table({"id": [1, 2], "item": ["tea", "cup"]}))

    differing = run_all(warehouse, "shop.*", "archive.*")
    catalog.drop_table("archive.copy")
    failing = run_all(warehouse, "shop.*", "archive.*")
    equal = run_all(warehouse, "shop.o*", "archive.*")

    assert (differing.exit_code, failing.exit_code, equal.exit_code) == (DIFFERENT, 1, 0)
    results = [{row["table"]: row["result"] for row in json.loads(each.stdout)} for each in (differing, failing, equal)]
    assert results == [
        {"shop.copy": "different", "shop.orders": "equal"},
        {"shop.copy": "error", "shop.orders": "equal"},
        {"shop.orders": "equal"},
    ]
    assert "archive.copy" in json.loads(failing.stdout)[0]["error"]


def test_a_pattern_without_tables_and_options_of_one_table_are_refused(warehouse: Path) -> None:
    assert "no table matches" in run_all(warehouse, "other.*", "archive.*").stderr
    assert "no --query" in run_all(warehouse, "shop.*", "archive.*", "--query", "SELECT 1").stderr
    assert "hidden" not in run_all(warehouse, "shop.*", "postgresql://me:hidden@db/shop").output


def run_all(warehouse: Path, pattern: str, against: str, *more: str) -> Result:
    return CliRunner().invoke(
        app, ["-w", str(warehouse), "--json", "verify", pattern, "--all", "--against", against, *more]
    )
