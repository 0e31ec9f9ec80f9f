"""Clients that have no credentials for the store get them with a table, from a real token service where one runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from local_s3 import LocalS3
from storage_lib import Catalog, open_catalog
from storage_lib.catalog.table_name import TableName
from storage_lib.io.environment import SystemClock
from tests.support.extras import needs
from tests.support.granted_credentials import GrantedCredentials
from tests.support.iceberg_readers import answered_by_duckdb, needs_readers, printed_by_pyiceberg
from tests.support.minio_server import ROLE, MinioServer, needs_minio
from tests.support.served_catalogs import TOKENS, ServedInProcess, client_file, serving

pytestmark = [needs("fastapi", "uvicorn", "httpx", "obstore"), pytest.mark.s3, pytest.mark.integration]

ORDERS, TOKEN = "/iceberg/v1/namespaces/shop/tables/orders", "/paimon/v1/main/databases/{}/tables/{}/token"
ASKING = {"X-Iceberg-Access-Delegation": "remote-signing, vended-credentials"}
VIEW = {"metadata.iceberg.storage": "table-location"}


@dataclass
class Server:
    """A server in this process over a warehouse in S3, with the token service that it asks."""

    catalog: Catalog
    service: GrantedCredentials
    served: ServedInProcess
    warehouse: str

    def ask(self, path: str, client: str = "reports", **headers: str) -> Any:
        return self.served.ask("GET", path, client, headers=headers)


@pytest.fixture
def server(s3: LocalS3, tmp_path: Path) -> Server:
    from storage_lib.serve.vending.vending import Vending

    warehouse = f"s3://lake/{tmp_path.name}"
    catalog, clock = open_catalog(warehouse, s3.options), SystemClock()
    _create_tables(catalog)
    service = GrantedCredentials(s3.options, clock)
    vending = Vending(service, clock, warehouse=warehouse)
    return Server(catalog, service, ServedInProcess(catalog, client_file(tmp_path), clock, vending), warehouse)


def _create_tables(catalog: Catalog) -> None:
    for name in ("shop.orders", "staging.items", "hidden.salaries"):
        table = catalog.create_table(name, {"id": "BIGINT", "item": "STRING"}, primary_key=["id"], options=VIEW)
        table.append([{"id": 1, "item": "tea"}, {"id": 2, "item": "cup"}])


def test_a_client_that_asks_gets_credentials_of_the_table(server: Server) -> None:
    told = server.ask(ORDERS, **ASKING).json()

    config = told["config"]
    assert config["s3.session-token"] == "token-1"
    assert int(config["s3.session-token-expires-at-ms"]) > SystemClock().now_millis()
    assert config["s3.endpoint"] == server.service.options["s3.endpoint"]
    prefixes = [each["prefix"] for each in told["storage-credentials"]]
    assert prefixes == [f"{server.warehouse}/shop.db/orders/", f"{server.warehouse}/iceberg/shop/orders/"]
    assert told["metadata-location"].startswith(prefixes[0])
    answer = server.ask(ORDERS, **ASKING)
    assert (answer.headers["Cache-Control"], answer.headers["Vary"]) == ("private, no-store", next(iter(ASKING)))


@pytest.mark.parametrize("values", [["remote-signing", "vended-credentials"], ["Vended-Credentials"]])
def test_a_header_may_be_repeated_and_written_in_capitals(server: Server, values: list[str]) -> None:
    told = server.served.ask("GET", ORDERS, headers=[(name, each) for name in ASKING for each in values]).json()

    assert told["config"]["s3.session-token"] == "token-1"


def test_a_client_that_does_not_ask_gets_none(server: Server) -> None:
    for headers in ({}, {"X-Iceberg-Access-Delegation": "remote-signing"}):
        told = server.ask(ORDERS, **headers).json()
        assert "storage-credentials" not in told
        assert "s3.session-token" not in told["config"]

    assert server.service.asked == []


def test_an_answer_is_unchanged_while_the_credentials_are(server: Server) -> None:
    tag = server.ask(ORDERS, **ASKING).headers["ETag"]

    assert server.ask(ORDERS, **ASKING, **{"If-None-Match": tag}).status_code == 304
    assert server.ask(ORDERS, **{"If-None-Match": tag}).status_code == 200


def test_credentials_can_be_asked_for_again_where_the_answer_says(server: Server) -> None:
    told = server.ask(ORDERS, **ASKING).json()

    again = server.ask(f"/iceberg/{told['config']['client.refresh-credentials-endpoint']}")

    assert again.json() == {"storage-credentials": told["storage-credentials"]}
    assert again.headers["Cache-Control"] == "private, no-store"
    assert any("/credentials" in each for each in server.ask("/iceberg/v1/config").json()["endpoints"])


def test_a_closed_database_gives_no_credentials(server: Server) -> None:
    asked = [
        server.ask("/iceberg/v1/namespaces/hidden/tables/salaries", **ASKING),
        server.ask("/iceberg/v1/namespaces/hidden/tables/salaries/credentials"),
        server.ask(TOKEN.format("hidden", "salaries")),
        server.ask(TOKEN.format("shop", "missing")),
        server.ask("/iceberg/v1/namespaces/shop/tables/missing/credentials"),
        server.ask(f"{ORDERS}/credentials", "past"),
    ]

    assert [each.status_code for each in asked] == [403, 403, 403, 404, 404, 401]
    assert server.service.asked == []


def test_a_client_of_paimon_gets_credentials_that_read(server: Server) -> None:
    told = server.ask(TOKEN.format("shop", "orders")).json()

    assert told["token"]["fs.s3.securityToken"] == told["token"]["s3.session.token"] == "token-1"
    assert told["expiresAtMillis"] > SystemClock().now_millis()
    assert not any(action in server.service.asked[0].policy for action in ("Put", "Delete", "s3:*"))


def test_a_client_that_may_write_is_told_to_use_credentials_of_its_own(server: Server) -> None:
    overrides = [server.ask("/paimon/v1/config", each).json()["overrides"] for each in ("reports", "loader")]

    assert [each["data-token.enabled"] for each in overrides] == ["true", "false"]


def test_a_branch_has_the_credentials_of_its_table(server: Server) -> None:
    server.catalog.load_table("staging.items").branches.create("dev")

    server.ask(TOKEN.format("staging", "items"), "loader")
    told = server.ask(TOKEN.format("staging", "items$branch_dev"), "loader")

    assert told.status_code == 200
    assert len(server.service.asked) == 1


def test_a_token_service_that_is_down_makes_the_client_try_again(server: Server) -> None:
    server.service.is_down = True

    for path, headers in ((ORDERS, ASKING), (f"{ORDERS}/credentials", {}), (TOKEN.format("shop", "orders"), {})):
        answer = server.ask(path, **headers)
        assert answer.status_code == 503
        assert "s3://" not in answer.text
    assert server.ask(ORDERS).status_code == 200


def test_a_server_without_a_role_says_so(s3: LocalS3, tmp_path: Path) -> None:
    catalog = open_catalog(f"s3://lake/{tmp_path.name}", s3.options)
    _create_tables(catalog)
    served = ServedInProcess(catalog, client_file(tmp_path))

    told = served.ask("GET", ORDERS, headers=ASKING)
    refused = [served.ask("GET", path) for path in (f"{ORDERS}/credentials", TOKEN.format("shop", "orders"))]

    assert told.status_code == 200
    assert "storage-credentials" not in told.json()
    assert [each.status_code for each in refused] == [404, 501]
    assert all("your own" in each.text for each in refused)
    assert not any("credentials" in each for each in served.ask("GET", "/iceberg/v1/config").json()["endpoints"])


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinioServer]:
    with MinioServer(tmp_path_factory.mktemp("minio")) as server:
        _create_tables(open_catalog("s3://lake/warehouse", server.options))
        yield server


@needs_minio
@needs("botocore")
def test_a_store_lets_credentials_do_what_their_policy_says(minio: MinioServer) -> None:
    from storage_lib.serve.vending.assumed_role import AssumedRole
    from storage_lib.serve.vending.vending import Vending

    service = AssumedRole(ROLE, minio.options, address=minio.endpoint)
    vending = Vending(service, SystemClock(), warehouse="s3://lake/warehouse")
    vending.try_once()
    place, hidden = "lake/warehouse/shop.db/orders", "lake/warehouse/hidden.db/salaries"
    found = vending.credentials("reports", TableName.parse("shop.orders"), f"s3://{place}")
    keys = {"access_key": found.access_key, "secret_key": found.secret_key, "session_token": found.session_token}
    store = _store(minio, **keys)
    owner = _store(minio, access_key=minio.options["s3.access-key"], secret_key=minio.options["s3.secret-key"])
    for unserved in (f"{place}/states/s/schema/schema-0", f"{place}/rejected/list-1", f"{place}2/schema/schema-0"):
        _write(owner, unserved)
    before = _files(owner)

    assert f"{place}/schema/schema-0" in {each.path for each in store.get_file_info(_below(place))}
    assert store.open_input_stream(f"{place}/schema/schema-0").read()
    for path in (
        f"{hidden}/schema/schema-0",
        f"{place}2/schema/schema-0",
        f"{place}/states/s/schema/schema-0",
        f"{place}/rejected/list-1",
    ):
        with pytest.raises(OSError, match="ACCESS_DENIED"):
            store.open_input_stream(path).read()
    for directory in (hidden, f"{place}2", "lake/warehouse/shop.db", "lake/warehouse", "lake"):
        with pytest.raises(OSError, match="ACCESS_DENIED"):
            store.get_file_info(pafs.FileSelector(directory))
    for path in ("bucket-0/x", "dt=1/bucket-0/x", "manifest/x", "schema/schema-9", "snapshot/snapshot-9", "metadata/x"):
        with pytest.raises(OSError, match="ACCESS_DENIED"):
            _write(store, f"{place}/{path}")
    for path in before:
        with suppress(OSError):
            store.delete_file(path)
    assert _files(owner) == before


def _store(minio: MinioServer, **keys: str) -> pafs.S3FileSystem:
    return pafs.S3FileSystem(**keys, endpoint_override=minio.endpoint, region="us-east-1")


def _below(directory: str) -> pafs.FileSelector:
    return pafs.FileSelector(directory, recursive=True)


def _files(store: pafs.S3FileSystem) -> set[str]:
    return {each.path for each in store.get_file_info(_below("lake")) if each.type is pafs.FileType.File}


def _write(store: pafs.S3FileSystem, path: str) -> None:
    with store.open_output_stream(path) as file:
        file.write(b"-")


@needs_minio
@needs("botocore")
@needs_readers
def test_engines_read_by_the_address_and_the_token_alone(minio: MinioServer, tmp_path: Path) -> None:
    options = tmp_path / "options.json"
    options.touch(0o600)
    options.write_text(json.dumps(minio.options))
    role = ["--clients", str(client_file(tmp_path)), "--role", ROLE, "--token-service", minio.endpoint]
    orders = open_catalog("s3://lake/warehouse", minio.options).load_table("shop.orders")

    with serving("s3://lake/warehouse", *role, log=tmp_path / "log", options_file=options) as address:
        program = (
            "from pyiceberg.catalog import load_catalog\n"
            f"lake = load_catalog('lake', type='rest', uri='{address}/iceberg', token='{TOKENS['reports']}')\n"
            "print(lake.load_table('shop.orders').scan().to_arrow().sort_by('id').to_pylist())\n"
        )
        printed = printed_by_pyiceberg(program)
        orders.append(pa.table({"id": [3], "item": ["pot"]}))
        attached = f"ATTACH 'main' AS lake (TYPE iceberg, ENDPOINT '{address}/iceberg', TOKEN '{TOKENS['reports']}');"
        rows = answered_by_duckdb(f"{attached} FROM lake.shop.orders ORDER BY id")

    assert printed.strip() == "[{'id': 1, 'item': 'tea'}, {'id': 2, 'item': 'cup'}]"
    assert rows[-1] == "[(1, 'tea'), (2, 'cup'), (3, 'pot')]"
