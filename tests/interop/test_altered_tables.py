"""Schemas changed alternately by this library and Paimon's Java core, and branches: every row is compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, DropColumn, RenameColumn
from tests.interop.engines import IDENTIFIER, Java, Ours, Place, rows_of
from tests.interop.one_life import DAYS, comparable
from tests.interop.table_cases import TableCase
from tests.support.other_readers import read_with_rust
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
    table.branches.open("dev").append(pa.table({"day": [DAYS[0]], "id": [1], "name": ["branch"], "count": [2]}))

    branch = f"{IDENTIFIER}$branch_dev"
    paimon_core.write(place.warehouse, branch, [(DAYS[0], 2, "theirs", 3)], table.schema)

    assert [row[2] for row in sorted(paimon_core.read(place.warehouse, branch, table.schema))] == ["branch", "theirs"]
    assert sorted(table.branches.open("dev").to_arrow()["name"].to_pylist()) == ["branch", "theirs"]
    same_rows(place, paimon_core)


def test_a_table_in_other_buckets_is_read_and_written_by_the_other_and_an_older_snapshot_stays_readable(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    Ours().create(place, CASE)
    ids = list(range(40))
    rows = {"day": [DAYS[id_ % 2] for id_ in ids], "id": ids, "name": [f"n{id_}" for id_ in ids], "count": ids}
    place.ours().append(pa.table(rows))
    before = same_rows(place, paimon_core)

    place.ours().rewrite(options={"bucket": "5"})
    assert same_rows(place, paimon_core) == before
    assert comparable(rows_of(read_with_rust(place.warehouse, IDENTIFIER), place.schema)) == before

    paimon_core.write(place.warehouse, IDENTIFIER, [(DAYS[0], 2, "theirs", 3)], place.schema)
    place.ours().append(pa.table({"day": [DAYS[1]], "id": [1], "name": ["ours"], "count": [4]}))
    after = same_rows(place, paimon_core)
    assert len(after) == len(before)
    assert len(set(after) - set(before)) == 2


def test_a_table_that_got_a_key_is_read_and_written_by_the_other(paimon_core: PaimonCore, tmp_path: Path) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    catalog = place.catalog
    columns = {"day": "STRING", "id": "BIGINT", "name": "STRING", "count": "INT"}
    table = catalog.create_table(IDENTIFIER, columns, partition_by=["day"], options={"write-mode": "append-only"})
    table.append(pa.table({"day": [DAYS[0]] * 3, "id": [1, 2, 3], "name": ["a", "b", "c"], "count": [1, 2, 3]}))

    table.rewrite(primary_key=["day", "id"])
    same_rows(place, paimon_core)
    paimon_core.write(place.warehouse, IDENTIFIER, [(DAYS[0], 2, "theirs", 3)], place.schema)

    assert len(same_rows(place, paimon_core)) == 3
    place.ours().append(pa.table({"day": [DAYS[0]], "id": [2], "name": ["ours"], "count": [4]}))
    assert len(same_rows(place, paimon_core)) == 3
