"""A branch keeps its rows when Paimon's Java core, which does not see the branch, expires the table's snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib.schema.types.row_kind import RowKind
from tests.interop.engines import Java, Ours, Place
from tests.interop.one_life import DAYS
from tests.interop.table_cases import TableCase
from tests.support.paimon_core import PaimonCore

DAY = DAYS[0]


@pytest.mark.parametrize("is_newest", [True, False], ids=["newest", "older"])
def test_a_branch_outlives_their_expiry(tmp_path: Path, paimon_core: PaimonCore, *, is_newest: bool) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    ours, theirs = Ours(), Java(paimon_core)
    theirs.create(place, TableCase(columns={"n": ("BIGINT", [1])}, options={"bucket": "1"}))
    theirs.write(place, [(DAY, 1, 1)], [RowKind.INSERT])
    if not is_newest:
        theirs.write(place, [(DAY, 1, 2)], [RowKind.INSERT])
    place.ours().branches.create("dev", snapshot_id=None if is_newest else 1)
    theirs.write(place, [(DAY, 1, 3)], [RowKind.INSERT])
    ours.compact(place, full=True)

    theirs.expire(place)

    assert (
        place.ours().context.file_store.snapshots.earliest_id() == place.ours().context.file_store.snapshots.latest_id()
    )
    assert place.ours().branches.open("dev").to_arrow()["n"].to_pylist() == [1]
    place.ours().branches.delete("dev")
    assert place.ours().tags.list() == ()
    assert place.ours().to_arrow()["n"].to_pylist() == [3]
