"""``dynamic-table rejected``: what a person sees of rejected records, and does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from storage_lib import DynamicTable, open_catalog
from storage_lib.cli.app import app
from storage_lib.schema.types.rejected_schema import REJECTED_SCHEMA


class Shell:
    """Runs commands on a table with two rejected records, one of which a fix lets in."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        columns = {"id": "BIGINT NOT NULL", "name": "VARCHAR(5)"}
        table = open_catalog(str(warehouse)).create_table("shop.items", columns, primary_key=["id"])
        values = [b'{"before":null,"after":{"id":1,"name":"teapot"},"op":"c"}', b"\xff torn"]
        records = [
            {
                "source": "s",
                "topic": "s",
                "partition": 0,
                "offset": each,
                "value": value,
                "column": "name",
                "reason": "bad",
            }
            for each, value in enumerate(values)
        ]
        table.append(table.to_arrow(), rejected=pa.Table.from_pylist(records, schema=REJECTED_SCHEMA))
        self.fits, self.torn = self.table.inspect.rejected().sort_by("offset")["id"].to_pylist()

    @property
    def table(self) -> DynamicTable:
        return open_catalog(str(self.warehouse)).load_table("shop.items")

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, ["-w", str(self.warehouse), *arguments], input=stdin)

    def answer(self, *arguments: str) -> Any:
        result = self.run("--json", "rejected", "shop.items", *arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_the_records_are_listed_and_one_is_shown_with_its_bytes(shell: Shell) -> None:
    listed = shell.run("rejected", "shop.items")
    shown = shell.run("rejected", "shop.items", shell.fits)

    assert shell.torn in listed.stdout
    assert "teapot" not in listed.stdout
    assert '"name":"teapot"' in shown.stdout
    assert shell.answer(shell.torn)[0]["value"] == b"\xff torn".hex()


def test_a_fix_lets_a_record_in_and_says_why_the_other_one_stays(shell: Shell) -> None:
    result = shell.run("rejected", "shop.items", "--reingest", "--fix", "name=left(name, 3)")

    assert result.exit_code == 0, result.output
    assert f"{shell.torn} stays" in result.stderr
    assert shell.table.to_arrow().to_pylist() == [{"id": 1, "name": "tea"}]
    assert [each["id"] for each in shell.answer()] == [shell.torn]


def test_records_are_deleted_after_a_confirmation_only(shell: Shell) -> None:
    refused = shell.run("rejected", "shop.items", shell.torn, "--delete", stdin="n\n")
    assert refused.exit_code != 0
    assert shell.table.inspect.rejected_count() == 2

    assert shell.answer(shell.torn, "--delete", "--yes") == {"deleted": 1}

    assert [each["id"] for each in shell.answer()] == [shell.fits]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--reingest", "--delete"), "choose"),
        (("--fix", "name=left(name, 3)"), "--reingest"),
        (("no-such-id",), "no rejected record"),
        (("--reingest", "--stored", "maybe"), "on_stored"),
    ],
)
def test_an_unclear_wish_is_refused_and_changes_nothing(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    result = shell.run("rejected", "shop.items", *arguments)

    assert result.exit_code != 0
    assert problem in result.output
    assert shell.table.inspect.rejected_count() == 2
