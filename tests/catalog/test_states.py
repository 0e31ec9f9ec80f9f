"""A state of a table is a table inside its directory: unlisted, and moved and dropped with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib import AlreadyExistsError, InvalidInputError, NotFoundError, load_table_at, open_catalog
from storage_lib.catalog.catalog import Catalog
from storage_lib.table.dynamic_table import DynamicTable


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = open_catalog(str(tmp_path / "warehouse"), {"file.format": "parquet"})
    catalog.create_table("shop.t", {"id": "BIGINT"}, primary_key=["id"]).append([{"id": 1}])
    return catalog


def create_state(catalog: Catalog) -> DynamicTable:
    return catalog.create_state("shop.t", "a1", "k INT, n BIGINT", primary_key=["k"], options={"bucket": "1"})


def test_a_state_is_written_and_loaded_by_its_address_and_is_not_listed(catalog: Catalog) -> None:
    state = create_state(catalog)
    state.upsert([{"k": 1, "n": 2}])

    loaded = load_table_at(state.address)

    assert loaded.name == state.name == "shop.t$state_a1"
    assert loaded.uuid == state.uuid
    assert loaded.to_arrow().to_pylist() == [{"k": 1, "n": 2}]
    assert catalog.list_tables() == ["shop.t"]
    assert catalog.load_table("shop.t").to_arrow().to_pylist() == [{"id": 1}]
    with pytest.raises(AlreadyExistsError, match="state_a1 already exists"):
        create_state(catalog)


def test_a_state_moves_with_its_table_and_is_dropped_with_it(catalog: Catalog, tmp_path: Path) -> None:
    create_state(catalog).upsert([{"k": 1, "n": 2}])

    catalog.rename_table("shop.t", "shop.u")
    moved = catalog.load_table("shop.u$state_a1").count()
    catalog.drop_table("shop.u")

    assert moved == 1
    assert not [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()]


def test_orphan_cleanup_of_the_table_leaves_its_states(catalog: Catalog) -> None:
    from datetime import timedelta

    state = create_state(catalog)
    state.upsert([{"k": 1, "n": 2}])

    found = catalog.load_table("shop.t").maintenance.remove_orphan_files(older_than=timedelta(0))

    assert found.paths == ()
    assert state.count() == 1


def test_a_dropped_state_can_be_dropped_again_and_is_not_found(catalog: Catalog) -> None:
    create_state(catalog).upsert([{"k": 1, "n": 2}])

    listed = catalog.states("shop.t")
    catalog.drop_state("shop.t", "a1")
    catalog.drop_state("shop.t", "a1")

    assert (listed, catalog.states("shop.t")) == (["a1"], [])
    with pytest.raises(NotFoundError, match=r"shop.t\$state_a1 does not exist"):
        catalog.load_table("shop.t$state_a1")
    assert catalog.load_table("shop.t").count() == 1


@pytest.mark.parametrize("state", ["", "../t", "a b", "x/y"])
def test_an_id_that_is_not_a_directory_is_refused(catalog: Catalog, state: str) -> None:
    with pytest.raises(InvalidInputError, match="state"):
        catalog.create_state("shop.t", state, "k INT", primary_key=["k"], options={})


def test_a_state_is_not_created_dropped_or_renamed_by_its_name(catalog: Catalog) -> None:
    create_state(catalog)

    for call in (catalog.drop_table, lambda name: catalog.rename_table(name, "shop.v")):
        with pytest.raises(InvalidInputError, match="name the table itself"):
            call("shop.t$state_a1")
