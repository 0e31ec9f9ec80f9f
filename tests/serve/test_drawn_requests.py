"""Requests drawn at random: none is answered by 500, and none shows what belongs to another client."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from storage_lib import open_catalog
from tests.support.extras import needs
from tests.support.served_catalogs import ServedInProcess, client_file

pytestmark = needs("fastapi", "httpx")

MARK = "sesame"
ODD = (
    *(
        "..",
        ".",
        "%2e%2e",
        "..%2f..",
        "%2Fetc%2Fpasswd",
        "%00",
        "%1F",
        "a%1Fb",
        "%0A",
        "%F0%9F%90%9F",
        "%FF",
        "%ED%A0%80",
    ),
    *(
        "shop.orders",
        "orders$branch_x",
        "orders$snapshots",
        "$",
        "-",
        "",
        "A" * 300,
        "'",
        '"',
        "{namespace}",
        "*",
        "%25",
    ),
)
WORDS = (
    *("v1", "v2", "config", "namespaces", "tables", "views", "metrics", "register", "properties", "rename", "oauth"),
    *("tokens", "transactions", "commit", "databases", "snapshot", "token", "branches", "tags", "partitions", "auth"),
    *("openapi.json", "docs", "iceberg", "paimon", "health", "main"),
)
NAMES = ("shop", "orders", "plain", "private", "salaries", "staging", "nothing")
METHODS = ("GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW")
BODIES = (
    *(b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe", b'"x"', b"1e999", b"NaN", b"[" * 5000, b'{"a":"\\ud800"}'),
    *(b'{"updates":[],"requirements":[]}', b"grant_type=client_credentials&client_id=%FF", b"grant_type=%"),
    *(b'{"name":1}', b'{"name":"private"}', b'{"identifier":{"database":"private","object":"salaries"}}'),
    *(b'{"source":{"database":"shop","object":"orders"},"destination":{"database":"private","object":"x"}}',),
    *(b'{"changes":[{"action":"dropColumn","fieldNames":["id"]}]}', b'{"changes":1}', b'{"changes":[{}]}'),
    *(b'{"identifier":{"database":"shop","object":"t"},"schema":{"fields":[{"id":0,"name":"a","type":"X"}]}}',),
    *(b'{"removals":["a"],"updates":{"b":"c"}}', b'{"options":{"path":"/etc"}}'),
)
QUERIES = (
    "",
    "?pageSize=2",
    "?pageSize=-1",
    "?pageToken=x",
    "?snapshots=refs",
    "?parent=private",
    "?warehouse=..",
    "?%FF=%FF",
)
HEADERS: tuple[dict[str, Any], ...] = (
    {},
    {"If-None-Match": "*"},
    {"Content-Type": "application/json"},
    {"Content-Type": "multipart/form-data"},
    {"Content-Length": "7"},
    {"X-Iceberg-Access-Delegation": "vended-credentials"},
)
CLIENTS = ("reports", "reports", "reports", "loader", "past", "wrong", None)


def drawn(rng: Random) -> tuple[str, str, str | None, dict[str, Any]]:
    root = rng.choice(["/iceberg", "/iceberg/v1/namespaces", "/paimon", "/paimon/v1/main/databases", ""])
    parts = [rng.choice(rng.choice([NAMES, NAMES, WORDS, WORDS, ODD])) for _ in range(rng.randrange(5))]
    if rng.random() < 0.5:
        kind = "/iceberg/v1/namespaces" if rng.random() < 0.5 else "/paimon/v1/main/databases"
        name = rng.choice([*NAMES, *ODD])
        root, parts = kind, [name, "tables", rng.choice([*NAMES, *ODD]), *parts[:1]][: rng.randrange(1, 5)]
    path = "/".join([root, *parts]) + rng.choice(QUERIES)
    return (
        rng.choice(METHODS),
        path or "/",
        rng.choice(CLIENTS),
        {
            "content": rng.choice(BODIES),
            "headers": rng.choice(HEADERS),
        },
    )


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep), pytest.param(3, marks=pytest.mark.deep)])
def test_no_request_fails_or_shows_what_belongs_to_others(seed: int, tmp_path: Path) -> None:
    """Only ``past``, whose token has expired, might see the database ``private``."""
    catalog = open_catalog(tmp_path / "lake")
    options = {"metadata.iceberg.storage": "table-location", "log.system": "none", "write-mode": "append-only"}
    catalog.create_table("shop.orders", {"id": "BIGINT"}, options=options).append([{"id": 1}])
    catalog.create_table("shop.plain", {"id": "BIGINT"}, options={"log.system": "none"})
    catalog.create_database("private", {"owner": MARK})
    catalog.create_table("private.salaries", {MARK: "BIGINT"}, options=options).append([{MARK: 1}])
    served = ServedInProcess(catalog, client_file(tmp_path))
    rng = Random(seed)  # noqa: S311  drawn, not secret
    asked = [drawn(rng) for _ in range(900)]

    for request, answer in zip(asked, served.ask_all(asked), strict=True):
        assert answer.status_code < 500 or answer.status_code == 501, (request, answer.text)
        assert MARK not in answer.text, request
        if answer.status_code != 200:  # loaded tables name their files
            assert str(tmp_path) not in answer.text, (request, answer.text)
            assert "Traceback" not in answer.text
        if request[2] in ("past", "wrong", None) and "oauth" not in request[1]:
            assert answer.status_code >= 400 or request[1].startswith(
                ("/health", "/iceberg/openapi.json", "/paimon/openapi.json")
            ), request

    assert sorted(catalog.list_tables()) == ["private.salaries", "shop.orders", "shop.plain"]
    assert catalog.load_table("private.salaries").to_arrow().num_rows == 1


def mutated(rng: Random, value: Any) -> Any:
    """Return a JSON value with one part dropped or replaced."""
    odd = [None, True, 0, -1, 1.5, 2**70, "", "x", "\0", "é🐟", "A" * 300, "../x", "$", [], {}, [None], {"a": 1}]
    if not value or not isinstance(value, dict | list) or rng.random() < 0.2:
        return rng.choice(odd)
    if isinstance(value, list):
        place = rng.randrange(len(value))
        return [mutated(rng, each) if at == place else each for at, each in enumerate(value)]
    chosen = rng.choice(list(value))
    if rng.random() < 0.2:
        return {key: each for key, each in value.items() if key != chosen}
    return {key: mutated(rng, each) if key == chosen else each for key, each in value.items()}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep), pytest.param(3, marks=pytest.mark.deep)])
def test_no_body_that_is_almost_right_fails_or_damages_a_table(seed: int, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "lake", {"log.system": "none"})
    served = ServedInProcess(catalog, client_file(tmp_path))
    columns, root = {"id": "BIGINT", "item": "STRING"}, "/paimon/v1/main/databases/staging/tables"
    for name in ("staging.first", "staging.second", "shop.orders", "private.salaries"):
        catalog.create_table(name, columns, primary_key=["id"]).append([{"id": 1, "item": name}])
    field = {"id": 0, "name": "id", "type": "BIGINT NOT NULL"}
    nested = {"type": "ROW", "fields": [{"id": 3, "name": "a", "type": {"type": "ARRAY", "element": "INT"}}]}
    schema = {"fields": [field, {"id": 1, "name": "n", "type": nested}], "primaryKeys": ["id"], "partitionKeys": []}
    move = {"fieldName": "item", "referenceFieldName": "id", "type": "BEFORE"}
    changes = [
        {"action": "addColumn", "fieldNames": ["c"], "dataType": "INT", "comment": "x", "move": None},
        {"action": "updateColumnPosition", "move": move},
        {"action": "updateColumnNullability", "fieldNames": ["item"], "newNullability": True},
        {"action": "setOption", "key": "num-sorted-run.compaction-trigger", "value": "3"},
        {"action": "updateComment", "comment": "x"},
    ]
    newest = tmp_path / "lake" / "staging.db" / "first" / "snapshot" / "snapshot-1"
    rng = Random(seed)  # noqa: S311  drawn, not secret
    for number in range(250):
        snapshot = {**json.loads(newest.read_text()), "id": rng.choice([1, 2])}
        source, destination = ({"database": "staging", "object": name} for name in ("second", "moved"))
        path, body = rng.choice(
            [
                (root, {"identifier": {"database": "staging", "object": f"t{number}"}, "schema": schema}),
                (f"{root}/first", {"changes": changes}),
                (f"{root}/first/commit", {"tableId": None, "snapshot": snapshot, "statistics": []}),
                (f"{root}/first/rollback", {"instant": {"type": "snapshot", "snapshotId": 1}}),
                ("/paimon/v1/main/tables/rename", {"source": source, "destination": destination}),
                ("/paimon/v1/main/databases", {"name": "staging", "options": {"a": "b"}}),
            ]
        )
        for _ in range(rng.choice([1, 1, 2])):
            body = mutated(rng, body)
        answer = served.ask("POST", path, "loader", content=json.dumps(body).encode())
        assert answer.status_code < 500 or answer.status_code == 501, (path, body, answer.text)
        assert str(tmp_path) not in answer.text, (path, body, answer.text)

    for name in catalog.list_tables():
        catalog.load_table(name).to_arrow()
    assert catalog.load_table("shop.orders").to_arrow().num_rows == 1
    assert catalog.load_table("private.salaries").to_arrow().num_rows == 1
    assert sorted({name.partition(".")[0] for name in catalog.list_tables()}) == ["private", "shop", "staging"]
