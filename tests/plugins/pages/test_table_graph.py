"""A materialized table's query and graph, as the pages receive them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.pages import pages_app as pages
from storage_lib import Catalog, DynamicTable, open_catalog
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition, RefreshStatus, parse_freshness
from tests.support.asgi_client import AsgiClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTILE = "SELECT '<script>window.hacked=1</script>' AS id FROM orders"


@pytest.fixture
def client(warehouse: Path) -> Iterator[AsgiClient]:
    """Return the client of a user who may read Airflow's assets."""
    [guard] = pages.app.router.dependencies
    assert guard.dependency is not None
    pages.app.dependency_overrides[guard.dependency] = lambda: None
    yield AsgiClient(pages.app)
    pages.app.dependency_overrides.clear()


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    """Return a catalog with orders, a chain of two tables over them, and a table that has nothing to do with them."""
    catalog = open_catalog(str(warehouse), {"log.system": "none"})
    for name in ("shop.orders", "shop.other"):
        catalog.create_table(name, {"id": "BIGINT"}, primary_key=["id"])
    define(catalog, "shop.ids", "SELECT id FROM orders", ("shop.orders",), freshness=parse_freshness("PT5M"))
    define(catalog, "shop.last", "SELECT max(id) AS id FROM ids", ("shop.ids", "shop.orders"))
    return catalog


def define(catalog: Catalog, name: str, query: str, sources: tuple[str, ...], **more: Any) -> DynamicTable:
    definition = MaterializedTableDefinition(query=query, database="shop", sources=sources, **more)
    return catalog.create_table(name, {"id": "BIGINT"}, primary_key=["id"], options=definition.to_options())


def graph(client: AsgiClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/graph", params={"name": name}).json()
    assert not found["is_late"]
    return found


def levels(found: dict[str, Any]) -> dict[str, int]:
    return {node["name"]: node["level"] for node in found["nodes"]}


def test_a_table_shows_its_query_freshness_mode_and_status(client: AsgiClient, catalog: Catalog) -> None:
    view = client.get("/api/table", params={"name": "shop.ids"}).json()
    ordinary = client.get("/api/table", params={"name": "shop.orders"}).json()

    assert view["materialized"] == {
        "query": "SELECT id FROM orders",
        "database": "shop",
        "freshness_seconds": 300,
        "is_refreshed_by_readers": False,
        "refresh_mode": "auto",
        "status": "activated",
    }
    assert ordinary["materialized"] is None


def test_the_graph_leads_up_and_down_stream_and_nowhere_else(client: AsgiClient, catalog: Catalog) -> None:
    assert levels(graph(client, "shop.ids")) == {"shop.orders": -1, "shop.ids": 0, "shop.last": 1}
    assert levels(graph(client, "shop.orders")) == {"shop.orders": 0, "shop.ids": 1, "shop.last": 2}
    assert levels(graph(client, "shop.other")) == {"shop.other": 0}


def test_an_edge_says_which_snapshot_is_held_and_since_when_a_newer_one_exists(
    client: AsgiClient, catalog: Catalog, spark: SparkSession
) -> None:
    from storage_lib.spark import refresh

    orders = catalog.load_table("shop.orders")
    orders.append([{"id": 1}])
    [before] = [edge for edge in graph(client, "shop.ids")["edges"] if edge["table"] == "shop.ids"]
    refresh(spark, catalog.load_table("shop.ids"))
    [current] = [edge for edge in graph(client, "shop.ids")["edges"] if edge["table"] == "shop.ids"]
    orders.append([{"id": 2}])
    orders.append([{"id": 3}])
    [behind] = [edge for edge in graph(client, "shop.ids")["edges"] if edge["table"] == "shop.ids"]

    assert (before["held"], before["newest"], before["is_behind"]) == (None, 1, True)
    assert (current["held"], current["newest"], current["is_behind"]) == (1, 1, False)
    assert (behind["held"], behind["newest"]) == (1, 3)
    assert behind["behind_since_millis"] == orders.inspect.snapshot(2).time_millis
    nodes = {node["name"]: node for node in graph(client, "shop.ids")["nodes"]}
    assert nodes["shop.orders"]["change_millis"] == orders.inspect.snapshot(3).time_millis


def test_a_table_that_is_suspended_shows_so_on_the_next_request(client: AsgiClient, catalog: Catalog) -> None:
    from storage_lib.schema.evolution.schema_changes import SetOption
    from storage_lib.schema.options.materialized_table import STATUS_OPTION

    graph(client, "shop.ids")
    catalog.load_table("shop.ids").alter(SetOption(STATUS_OPTION, RefreshStatus.SUSPENDED.upper()))

    nodes = {node["name"]: node for node in graph(client, "shop.ids")["nodes"]}
    view = client.get("/api/table", params={"name": "shop.ids"}).json()

    assert (nodes["shop.ids"]["status"], view["materialized"]["status"]) == ("suspended", "suspended")


def test_a_dropped_source_and_a_broken_table_do_not_hide_the_others(client: AsgiClient, catalog: Catalog) -> None:
    catalog.drop_table("shop.orders")
    for path in Path(catalog.load_table("shop.last").location, "schema").glob("schema-*"):
        path.write_text("{")

    found = graph(client, "shop.ids")

    nodes = {node["name"]: node for node in found["nodes"]}
    assert set(nodes) == {"shop.orders", "shop.ids"}
    assert "does not exist" in nodes["shop.orders"]["error"]
    assert [(edge["source"], edge["table"], "newest" in edge) for edge in found["edges"]] == [
        ("shop.orders", "shop.ids", False)
    ]
    assert client.get("/api/graph", params={"name": "shop.missing"}).status_code == 404


def test_a_query_is_sent_as_it_is_written_for_the_page_to_show_as_text(client: AsgiClient, catalog: Catalog) -> None:
    define(catalog, "shop.hostile", HOSTILE, ("shop.orders",))

    assert client.get("/api/table", params={"name": "shop.hostile"}).json()["materialized"]["query"] == HOSTILE
    script = Path(pages.STATIC, "refreshes.js").read_text()
    assert "innerHTML" not in script
    assert "refreshes.js" in Path(pages.STATIC, "table.html").read_text()
    assert client.get("/static/refreshes.js").status_code == 200
