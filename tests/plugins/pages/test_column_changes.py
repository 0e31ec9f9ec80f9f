"""A table's page names the changes of its columns, the newest first, and none of its options."""

from __future__ import annotations

import pytest

from dynamic_table.pages.catalog_board import CatalogBoard
from storage_lib import AddColumn, AlterType, DropColumn, MemoryCatalog, RenameColumn, SetOption
from tests.support.fake_environment import STARTED_MILLIS, fake_environment


def test_the_page_names_each_change_of_the_columns() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns = {"id": "INT NOT NULL", "item": "STRING", "sizes": "ARRAY<INT>", "count": "INT"}
    table = catalog.create_table("shop.items", columns, primary_key=["id"], options={"log.system": "none"})
    unchanged = CatalogBoard(catalog).view("shop.items")["column_changes"]

    for change in (
        AddColumn("note", "STRING"),
        SetOption("num-sorted-run.compaction-trigger", "7"),
        AlterType("count", "BIGINT"),
        RenameColumn("item", "name"),
        DropColumn("sizes"),
    ):
        table = table.alter(change)

    changes = CatalogBoard(catalog).view("shop.items")["column_changes"]
    assert unchanged == []
    assert [each["what"] for each in changes] == [
        "sizes dropped",
        "item renamed to name",
        "count changed from INT to BIGINT",
        "note STRING added",
    ]
    assert changes[0]["millis"] == pytest.approx(STARTED_MILLIS, abs=60_000)
