"""Runs docs/sql.md: every statement below its tour, in order, in one session."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from storage_lib.sql import Statement, parse, statements_of
from storage_lib.sql.run.procedures import PROCEDURES
from storage_lib.sql.state.settings import OWN_SETTINGS
from storage_lib.sql.statements.alter_statements import AlterTable
from tests.support.fenced_blocks import sections

if TYPE_CHECKING:
    from storage_lib.sql import Session

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
# tests/sql/test_tour.py runs the tour.
SECTIONS = [section for section in sections(PAGE) if section.title != "Tour"]
SCRIPTS = [block.text for section in SECTIONS for block in section.blocks if block.language == "sql"]


def test_every_statement_on_the_page_runs(sql: Session, warehouse: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "sales").mkdir(parents=True)
    write_deltalake(str(lake / "sales" / "prices"), pa.table({"item": ["tea", "cup"], "price": [4.5, 9.0]}))
    for script in SCRIPTS:
        for result in sql.execute_script(script.replace("<warehouse>", warehouse).replace("<lake>", str(lake))):
            if result.stream is not None:
                result.stream.awaitTermination()
            assert result.message or result.to_arrow().num_columns
    assert sql.execute("SELECT order_id FROM by_item").to_arrow().num_rows > 0


def test_every_kind_of_statement_is_on_the_page() -> None:
    shown = [parse(each.text) for script in SCRIPTS for each in statements_of(script)]
    assert {type(each) for each in shown} == set(get_args(Statement))
    changes = {type(each.change) for each in shown if isinstance(each, AlterTable)}
    (change,) = (field for field in fields(AlterTable) if field.name == "change")
    assert change.type == "TableChange"
    assert len(changes) >= 9


@pytest.mark.parametrize("name", [*PROCEDURES, *OWN_SETTINGS])
def test_the_page_names_every_procedure_and_setting(name: str) -> None:
    assert name in PAGE.read_text()
