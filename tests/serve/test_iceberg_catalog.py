"""The paths of Iceberg's REST catalog, called without a socket."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from storage_lib import Catalog, SetOption, open_catalog
from tests.support.extras import needs
from tests.support.moved_clock import MovedClock
from tests.support.served_catalogs import TOKENS, ServedInProcess, client_file

pytestmark = needs("fastapi", "httpx")

VIEW = {"metadata.iceberg.storage": "table-location", "log.system": "none"}
COLUMNS = {"id": "BIGINT", "item": "STRING"}
ORDERS = "/iceberg/v1/namespaces/shop/tables/orders"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = open_catalog(tmp_path / "lake")
    orders = catalog.create_table("shop.orders", COLUMNS, primary_key=["id"], options=VIEW)
    orders.append([{"id": 1, "item": "tea"}, {"id": 2, "item": "cup"}])
    orders.tags.create("first")
    orders.upsert([{"id": 2, "item": "mug"}])
    orders.delete([{"id": 1}])
    catalog.create_table("shop.plain", COLUMNS, options={"log.system": "none"})
    catalog.create_table("private.salaries", COLUMNS, options={**VIEW, "write-mode": "append-only"})
    return catalog


@pytest.fixture
def served(catalog: Catalog, tmp_path: Path) -> ServedInProcess:
    return ServedInProcess(catalog, client_file(tmp_path))


def test_a_client_sees_its_databases_and_the_tables_that_have_a_view(served: ServedInProcess) -> None:
    assert served.ask("GET", "/iceberg/v1/namespaces").json()["namespaces"] == [["shop"]]
    assert served.ask("GET", "/iceberg/v1/namespaces?parent=shop").json()["namespaces"] == []
    assert served.ask("GET", "/iceberg/v1/namespaces/shop").json() == {"namespace": ["shop"], "properties": {}}
    assert served.ask("HEAD", "/iceberg/v1/namespaces/shop").status_code == 204
    listed = served.ask("GET", "/iceberg/v1/namespaces/shop/tables").json()
    assert listed["identifiers"] == [{"namespace": ["shop"], "name": "orders"}]
    assert served.ask("HEAD", ORDERS).status_code == 204
    plain = served.ask("GET", "/iceberg/v1/namespaces/shop/tables/plain")
    assert (plain.status_code, plain.json()["error"]["type"]) == (404, "NoSuchTableException")
    assert "metadata.iceberg.storage" in plain.json()["error"]["message"]


def test_names_come_in_pages(catalog: Catalog, served: ServedInProcess) -> None:
    for name in ("a", "b", "c"):
        catalog.create_table(f"shop.{name}", COLUMNS, options={**VIEW, "write-mode": "append-only"})
    found: list[str] = []
    token: str | None = ""
    while token is not None:
        page = served.ask("GET", f"/iceberg/v1/namespaces/shop/tables?pageSize=2&pageToken={token}").json()
        found += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"]

    assert found == ["a", "b", "c", "orders"]
    for wrong in ("pageSize=0", "pageSize=x", "pageToken=%25"):
        assert served.ask("GET", f"/iceberg/v1/namespaces/shop/tables?{wrong}").status_code == 400


def test_a_loaded_table_is_the_newest_metadata_of_its_view(catalog: Catalog, served: ServedInProcess) -> None:
    loaded = served.ask("GET", ORDERS).json()
    refs = served.ask("GET", f"{ORDERS}?snapshots=refs").json()["metadata"]

    assert loaded["metadata"] == json.loads(Path(loaded["metadata-location"]).read_text())
    assert loaded["metadata"]["current-snapshot-id"] == 3
    assert [each["snapshot-id"] for each in loaded["metadata"]["snapshots"]] == [1, 2, 3]
    assert [each["snapshot-id"] for each in refs["snapshots"]] == [1, 3]
    assert [each["snapshot-id"] for each in refs["snapshot-log"]] == [1, 3]
    assert served.ask("GET", f"{ORDERS}?snapshots=some").status_code == 400


def test_an_unchanged_table_is_not_sent_again(catalog: Catalog, served: ServedInProcess) -> None:
    tag = served.ask("GET", ORDERS).headers["etag"]
    unchanged = served.ask("GET", ORDERS, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)

    catalog.load_table("shop.orders").append([{"id": 7, "item": "pot"}])

    changed = served.ask("GET", ORDERS, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["metadata"]["current-snapshot-id"] == 4


def test_a_view_that_is_dropped_or_was_moved_is_not_shown(catalog: Catalog, served: ServedInProcess) -> None:
    catalog.rename_table("shop.orders", "shop.sold")
    assert served.ask("GET", ORDERS).status_code == 404
    assert served.ask("GET", f"{ORDERS[:-6]}sold").json()["metadata"]["current-snapshot-id"] == 3

    catalog.alter_table("shop.sold", [SetOption("metadata.iceberg.storage", "disabled")])
    assert served.ask("GET", f"{ORDERS[:-6]}sold").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/iceberg/v1/namespaces"),
        ("DELETE", "/iceberg/v1/namespaces/shop"),
        ("POST", "/iceberg/v1/namespaces/shop/properties"),
        ("POST", "/iceberg/v1/namespaces/shop/tables"),
        ("POST", "/iceberg/v1/namespaces/shop/register"),
        ("POST", ORDERS),
        ("DELETE", ORDERS),
        ("POST", "/iceberg/v1/tables/rename"),
        ("POST", "/iceberg/v1/transactions/commit"),
    ],
)
def test_a_write_is_refused_with_advice_and_changes_nothing(
    catalog: Catalog, served: ServedInProcess, method: str, path: str
) -> None:
    before = served.ask("GET", ORDERS).json()
    refused = served.ask(method, path, "loader", content=b'{"updates": []}')

    assert refused.status_code == 403
    assert refused.json()["error"]["type"] == "ForbiddenException"
    assert "read-only" in refused.json()["error"]["message"]
    assert "Write to the table with" in refused.json()["error"]["message"]
    assert served.ask("GET", ORDERS).json() == before
    assert catalog.load_table("shop.orders").to_arrow().num_rows == 1


@pytest.mark.parametrize("client", [None, "past", "wrong-0123456789abcdef", "reports.1.2", "é"])
def test_an_unknown_or_expired_token_opens_nothing(served: ServedInProcess, client: str | None) -> None:
    for path in ("/iceberg/v1/config", "/iceberg/v1/namespaces", ORDERS, "/metrics"):
        headers = {} if client is None else {"Authorization": f"Bearer {TOKENS.get(client, client)}".encode()}
        refused = served.ask("GET", path, None, headers=headers)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.json()["error"]["type"] == "NotAuthorizedException"


def test_a_closed_database_looks_like_one_that_does_not_exist(served: ServedInProcess) -> None:
    for path in ("", "/tables", "/tables/salaries", "/tables/nothing"):
        closed = served.ask("GET", f"/iceberg/v1/namespaces/private{path}")
        missing = served.ask("GET", f"/iceberg/v1/namespaces/nothing{path}")
        assert closed.status_code == missing.status_code == 403
        assert closed.json() == missing.json()


def token_for(served: ServedInProcess, **form: str) -> Any:
    return served.ask("POST", "/iceberg/v1/oauth/tokens", None, data=form)


def test_a_client_gets_an_access_token_for_its_secret(catalog: Catalog, tmp_path: Path) -> None:
    clients = client_file(tmp_path)
    now = ServedInProcess(catalog, clients)
    later = ServedInProcess(catalog, clients, MovedClock(3_700))
    secret = {"grant_type": "client_credentials", "client_id": "reports", "client_secret": TOKENS["reports"]}

    given = token_for(now, **secret).json()
    token = given["access_token"]
    renewed = token_for(now, grant_type="urn:ietf:params:oauth:grant-type:token-exchange", subject_token=token).json()[
        "access_token"
    ]

    assert (given["token_type"], given["expires_in"]) == ("bearer", 3600)
    assert now.ask("GET", ORDERS, token).status_code == 200
    assert now.ask("GET", ORDERS, renewed).status_code == 200
    assert later.ask("GET", ORDERS, token).status_code == 401
    assert now.ask("GET", "/iceberg/v1/namespaces/private", token).status_code == 403
    for changed in (token[:-1], token.replace("reports", "loader"), token.replace(".", ".9", 1)):
        assert now.ask("GET", ORDERS, changed).status_code == 401
    by_header = now.ask(
        "POST",
        "/iceberg/v1/oauth/tokens",
        None,
        data={"grant_type": "client_credentials"},
        headers={"Authorization": "Basic cmVwb3J0czpyZXBvcnRzLTAxMjM0NTY3ODlhYmNkZWY="},
    )
    assert by_header.status_code == 200


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({}, 400, "unsupported_grant_type"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, 401, "invalid_client"),
        (
            {"grant_type": "client_credentials", "client_id": "loader", "client_secret": TOKENS["reports"]},
            401,
            "invalid_client",
        ),
        (
            {"grant_type": "client_credentials", "client_id": "past", "client_secret": TOKENS["past"]},
            401,
            "invalid_client",
        ),
    ],
)
def test_a_wrong_secret_gets_no_token(served: ServedInProcess, form: dict[str, str], status: int, error: str) -> None:
    answer = token_for(served, **form)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_without_tokens_only_programs_of_this_machine_are_answered(catalog: Catalog) -> None:
    served = ServedInProcess(catalog)
    path = "/iceberg/v1/namespaces"
    assert served.ask("GET", path, None).json()["namespaces"] == [["private"], ["shop"]]
    assert served.ask("GET", path, None, headers={"Host": "evil.example"}).status_code == 400
    assert served.ask("GET", path, None, headers={"Origin": "http://127.0.0.1"}).status_code == 403
    assert served.ask("POST", path, None, json={"namespace": ["x"]}).status_code == 403


def test_the_config_says_what_the_catalog_can_do(served: ServedInProcess) -> None:
    found = served.ask("GET", "/iceberg/v1/config?warehouse=main").json()
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in found["endpoints"]
    assert not [each for each in found["endpoints"] if each.startswith(("DELETE", "POST")) and "metrics" not in each]
    assert served.ask("GET", "/iceberg/v1/config?warehouse=other").status_code == 404
    described = served.ask("GET", "/iceberg/openapi.json", None).json()
    assert "/v1/namespaces/{namespace}/tables/{table}" in described["paths"]


def test_requests_are_counted_by_path_and_status(served: ServedInProcess) -> None:
    served.ask("GET", ORDERS)
    served.ask("BREW", "/iceberg/pot")
    counts = served.ask("GET", "/metrics").text
    path = "/v1/namespaces/{namespace}/tables/{table}"
    assert (
        f'dynamic_table_serve_requests_total{{catalog="iceberg",method="GET",path="{path}",status="200"}} 1' in counts
    )
    assert 'method="other",path="other",status="404"} 1' in counts


def test_a_damaged_view_is_not_shown_and_a_damaged_table_named_in_the_log_only(
    catalog: Catalog, served: ServedInProcess, tmp_path: Path
) -> None:
    for metadata in (tmp_path / "lake/shop.db/orders/metadata").glob("v*.metadata.json"):
        metadata.write_text("{")
    assert served.ask("GET", ORDERS).status_code == 404

    (tmp_path / "lake/shop.db/orders/schema/schema-0").write_text("{")
    damaged = served.ask("GET", ORDERS)
    assert damaged.status_code == 500
    assert str(tmp_path) not in damaged.text
    assert served.ask("GET", "/iceberg/v1/namespaces/shop/tables").json()["identifiers"] == []


def test_lists_and_loads_beside_commits_drops_and_recreations_never_fail(
    catalog: Catalog, served: ServedInProcess
) -> None:
    """A table is there or it is not; what is loaded belongs to one of the tables that had the name."""
    ended = Event()

    def change() -> None:
        try:
            for _ in range(6):
                table = catalog.create_table(
                    "shop.brief", COLUMNS, options={**VIEW, "write-mode": "append-only"}, if_not_exists=True
                )
                for number in range(3):
                    table.append([{"id": number, "item": "x"}])
                catalog.drop_table("shop.brief")
        finally:
            ended.set()

    changes = Thread(target=change)
    changes.start()
    seen: set[int] = set()
    brief = f"{ORDERS[:-6]}brief"
    while not ended.is_set():
        answers = served.ask_all(
            [("GET", "/iceberg/v1/namespaces/shop/tables", "reports", {})] + [("GET", brief, "reports", {})] * 3
        )
        assert answers[0].status_code == 200
        assert {"orders"} <= {each["name"] for each in answers[0].json()["identifiers"]} <= {"orders", "brief"}
        seen |= {each.status_code for each in answers[1:]}
    changes.join()

    assert seen <= {200, 404}


def test_the_application_answers_below_a_path_of_another(catalog: Catalog, served: ServedInProcess) -> None:
    """As a plugin mounts it in Airflow's API server."""
    from fastapi import FastAPI

    outer = FastAPI()
    outer.mount("/lake", served.app)
    inside = ServedInProcess(catalog)
    inside.app = outer

    assert inside.ask("GET", f"/lake{ORDERS}").json()["metadata"]["current-snapshot-id"] == 3
    assert inside.ask("GET", "/lake/paimon/v1/main/databases").json()["databases"] == ["shop"]
    assert inside.ask("GET", f"/lake{ORDERS}", None).status_code == 401
