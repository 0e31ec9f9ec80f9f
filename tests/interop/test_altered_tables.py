"""Schemas that we and Paimon's Java core change in turns, and branches: every row is compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from storage_lib.schema.schema_changes import AddColumn, AlterType, DropColumn, RenameColumn
from tests.interop.engines import IDENTIFIER, Java, Ours, Place
from tests.interop.one_life import DAYS, comparable
from tests.interop.table_cases import TableCase
from tests.support.paimon_core import PaimonCore

CASE = TableCase(columns={"name": ("STRING", ["one", None]), "count": ("INT", [7, None, -7])})


def same_rows(place: Place, core: PaimonCore) -> list[str]:
    ours = comparable(Ours().read(place, {}))
    assert comparable(Java(core).read(place, {})) == ours
    return ours


def test_columns_that_one_of_us_changes_are_read_and_written_by_the_other(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    Ours().create(place, CASE)
    place.ours().append(pa.table({"day": [DAYS[0]] * 2, "id": [1, 2], "name": ["one", None], "count": [7, -7]}))

    table = place.ours().alter(
        RenameColumn("count", "total"), AlterType("total", "BIGINT"), AddColumn("note", "STRING")
    )
    table.append(pa.table({"day": [DAYS[0]], "id": [2], "name": ["two"], "total": [2**40], "note": ["ours"]}))
    same_rows(place, paimon_core)

    add = {"action": "addColumn", "fieldNames": ["rate"], "dataType": "DOUBLE", "comment": None, "move": None}
    rename = {"action": "renameColumn", "fieldNames": ["name"], "newName": "title"}
    paimon_core.alter(place.warehouse, IDENTIFIER, [add, rename])
    paimon_core.write(place.warehouse, IDENTIFIER, [(DAYS[0], 3, "three", 3, "theirs", 0.5)], place.schema)
    same_rows(place, paimon_core)

    place.ours().alter(DropColumn("note"))
    paimon_core.compact(place.warehouse, IDENTIFIER)
    place.ours().compact()

    assert same_rows(place, paimon_core) == [
        f"('{DAYS[0]}', 1, 'one', 7, None)",
        f"('{DAYS[0]}', 2, 'two', {2**40}, None)",
        f"('{DAYS[0]}', 3, 'three', 3, 0.5)",
    ]


def test_a_branch_of_ours_is_a_table_of_its_own_to_java(paimon_core: PaimonCore, tmp_path: Path) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    Ours().create(place, CASE)
    table = place.ours()
    table.append(pa.table({"day": [DAYS[0]], "id": [1], "name": ["main"], "count": [1]}))
    table.branches.create("dev")
    table.branch("dev").append(pa.table({"day": [DAYS[0]], "id": [1], "name": ["branch"], "count": [2]}))

    branch = f"{IDENTIFIER}$branch_dev"
    paimon_core.write(place.warehouse, branch, [(DAYS[0], 2, "theirs", 3)], table.schema)

    assert [row[2] for row in sorted(paimon_core.read(place.warehouse, branch, table.schema))] == ["branch", "theirs"]
    assert sorted(table.branch("dev").to_arrow()["name"].to_pylist()) == ["branch", "theirs"]
    same_rows(place, paimon_core)
