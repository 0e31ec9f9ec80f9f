"""Descriptions of a table have typed attributes, the text of DESCRIBE, and short forms for shells and notebooks."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from storage_lib import NotFoundError
from tests.support.fake_environment import STARTED_MILLIS
from tests.support.orders_table import orders, rows


def test_attributes_are_typed_and_agree_with_the_text() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))

    told = table.describe()

    assert (told.name, told.primary_key, told.partition_by) == ("shop.orders", ("dt", "id"), ("dt",))
    assert told.columns["id"] == str(table.schema.field("id").type)
    assert (told.snapshot_id, told.row_count, told.has_log, told.is_compacted) == (1, 2, True, False)
    assert told.last_modified == datetime.fromtimestamp(STARTED_MILLIS / 1000, UTC)
    assert told.watermark is None
    assert told.lease_holder is None
    assert told["num-files"] == str(told.file_count)
    assert told["size"] == str(told.size_bytes)
    assert told["newest snapshot"] == "1"
    assert dict(told)["watermark"] == ""
    assert len(told) == len(list(told))
    with pytest.raises(KeyError):
        told["number of files"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.name = "other"  # type: ignore[misc]


def test_a_partition_is_described_by_its_own_files() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))

    told = table.describe({"dt": "a"})

    assert told.partition == {"dt": "a"}
    assert told.location.endswith("/dt=a")
    assert told.row_count == 1
    assert told.file_count < table.describe().file_count
    with pytest.raises(NotFoundError, match="has no partition"):
        table.describe({"dt": "z"})


def test_a_table_without_a_commit_is_described_too() -> None:
    told = orders().describe()

    assert (told.snapshot_id, told.file_count, told.size_bytes, told.row_count) == (None, 0, 0, 0)
    assert told.last_modified is None
    assert repr(told) == "<Description of shop.orders: no snapshot, 0 files, 0 bytes>"


def test_it_is_shown_in_short_in_a_shell_line_by_line_in_print_and_as_a_table_in_a_notebook() -> None:
    table = orders(None, **{"log.system": "none", "x.note": "<b>"})
    table.append(rows("+I a 1 10"))

    told = table.describe()

    assert repr(told) == f"<Description of shop.orders: snapshot 1, 1 files, {told.size_bytes} bytes>"
    assert "newest snapshot: 1" in str(told).splitlines()
    assert "<td>newest snapshot</td><td>1</td>" in told._repr_html_()
    assert "x.note=&lt;b&gt;" in told._repr_html_()
