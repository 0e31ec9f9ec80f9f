"""A table that is open while Paimon rolls it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib import WarehouseCatalog
from tests.support.paimon_rollback import roll_back_as_paimon_does


@pytest.mark.parametrize("commits_since", [0, 1, 3])
def test_a_refreshed_table_has_the_rows_of_the_new_history(tmp_path: Path, commits_since: int) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("shop.orders", {"id": "INT NOT NULL", "n": "INT"}, primary_key=["id"])
    table.append([{"id": 1, "n": 1}])
    table.append([{"id": 2, "n": 2}])
    assert table.read().read_all().num_rows == 2
    assert table.refresh() is table
    roll_back_as_paimon_does(table, 1)
    for number in range(commits_since):
        catalog.load_table("shop.orders").append([{"id": 10 + number, "n": 0}])

    refreshed = table.refresh()

    expected = [1, *(10 + number for number in range(commits_since))]
    assert table.inspect.snapshots_are_replaced()
    assert not refreshed.inspect.snapshots_are_replaced()
    assert sorted(refreshed.read().read_all()["id"].to_pylist()) == expected
    assert refreshed.refresh() is refreshed
