"""The first change of a source is all of its rows, with the columns that it has today."""

from __future__ import annotations

from storage_lib import MemoryCatalog
from storage_lib.materialized.sources.source_delta import source_delta
from storage_lib.schema.evolution.schema_changes import AddColumn
from tests.support.extras import needs

pytestmark = needs("sqlglot")


def test_a_first_snapshot_by_a_process_with_an_older_schema_has_nulls_in_the_new_column() -> None:
    catalog = MemoryCatalog({"log.system": "none"})
    old = catalog.create_table("shop.t", {"id": "INT"}, primary_key=["id"])
    source = catalog.load_table("shop.t").alter(AddColumn("x", "STRING"))
    old.append([{"id": 1}])

    delta = source_delta(source, ["id", "x"], 0, 1)

    assert delta.here is not None
    assert delta.here.select(["id", "x"]).to_pylist() == [{"id": 1, "x": None}]
