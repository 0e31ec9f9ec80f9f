"""Tags and branches of this library, read by independent programs, and vice versa."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, open_catalog
from tests.support.every_file import data_files, needed_by_snapshots
from tests.support.orders_table import COLUMNS, content, orders, rows
from tests.support.other_readers import append_with_pypaimon, needs_pypaimon, read_with_rust, run_pypaimon, rust_table

IDENTIFIER = "shop.orders"


@pytest.fixture
def table(tmp_path: Path) -> DynamicTable:
    """Create a table with three versions of a row."""
    options = {"log.system": "none", "bucket": "2", "write-only": "true"}
    table = orders(open_catalog(str(tmp_path)), **options)
    for price in (1, 2, 3):
        table.append(rows(f"+U a 1 {price}"))
    return table


def travelled(scratch: Path, identifier: str = IDENTIFIER, **options: str) -> set[str]:
    out = scratch / "read.arrow"
    run_pypaimon("travel", str(scratch), identifier, str(out), json.dumps(options))
    with pa.OSFile(str(out)) as file:
        return texts(pa.ipc.open_file(file).read_all())


def texts(found: pa.Table) -> set[str]:
    return {f"{row['dt']} {row['id']} {row['price']}" for row in found.to_pylist()}


def told(scratch: Path, method: str, *arguments: Any) -> None:
    run_pypaimon("catalog", str(scratch), IDENTIFIER, method, json.dumps(arguments))


def insert(id_: int) -> pa.Table:
    return pa.table({"dt": ["a"], "id": [id_], "price": [id_]}, schema=COLUMNS)


@needs_pypaimon
@pytest.mark.integration
def test_others_read_our_tags_branches_rollbacks_and_statistics(table: DynamicTable, tmp_path: Path) -> None:
    table.tags.create("second", 2, time_retained="1 d")
    table.branches.create("dev", tag="second")
    table.branches.open("dev").append(rows("+I a 5 5"))
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)

    assert travelled(tmp_path, **{"scan.tag-name": "second"}) == {"a 1 2"}
    assert travelled(tmp_path, f"{IDENTIFIER}$branch_dev") == {"a 1 2", "a 5 5"}
    assert [tag.name() for tag in rust_table(tmp_path, IDENTIFIER).list_tags()] == ["second"]
    branch = rust_table(tmp_path, f"{IDENTIFIER}$branch_dev")
    assert branch.latest_snapshot().id() == 3

    table.rollback_to(tag="second")
    table.maintenance.analyze()
    assert travelled(tmp_path) == texts(read_with_rust(tmp_path, IDENTIFIER)) == {"a 1 2"}
    append_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, insert(9))
    assert content(table) == texts(read_with_rust(tmp_path, IDENTIFIER)) == {"a 1 2", "a 9 9"}


@needs_pypaimon
@pytest.mark.integration
def test_we_read_and_write_on_tags_and_branches_of_others(table: DynamicTable, tmp_path: Path) -> None:
    told(tmp_path, "create_tag", "theirs", 2, "1 d")
    told(tmp_path, "create_branch", "audit", "theirs")

    (tag,) = table.tags.list()
    assert (tag.name, tag.snapshot.id, tag.time_retained_ms) == ("theirs", 2, 86_400_000)
    assert abs((tag.create_time_ms or 0) - table.environment.clock.now_millis()) < 3_600_000
    assert texts(table.to_arrow(tag="theirs")) == {"a 1 2"}
    assert table.branches.list() == ("audit",)
    branch = table.branches.open("audit")
    assert content(branch) == {"a 1 2"}
    branch.append(rows("+I a 5 5"))
    assert travelled(tmp_path, f"{IDENTIFIER}$branch_audit") == {"a 1 2", "a 5 5"}

    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)
    assert texts(table.to_arrow(tag="theirs")) == {"a 1 2"}
    assert content(table.branches.open("audit")) == {"a 1 2", "a 5 5"}
    table.branches.delete("audit")
    table.tags.delete("theirs")
    assert data_files(table) == needed_by_snapshots(table.context.file_store)
