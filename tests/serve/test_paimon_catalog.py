"""The paths of Paimon's REST catalog, called without a socket."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from storage_lib import Catalog, open_catalog
from storage_lib.catalog.views.view import View
from tests.support.extras import needs
from tests.support.served_catalogs import TOKENS, ServedInProcess, client_file

pytestmark = needs("fastapi", "httpx")

ROOT = "/paimon/v1/main/databases"
TABLE = f"{ROOT}/staging/tables/items"
FIELDS = [
    {"id": 0, "name": "id", "type": "BIGINT NOT NULL", "description": "the key"},
    {"id": 1, "name": "item", "type": "STRING"},
    {"id": 2, "name": "tags", "type": {"type": "ARRAY", "element": "STRING"}},
]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = open_catalog(tmp_path / "lake", {"log.system": "none"})
    catalog.create_database("staging")
    catalog.create_table("shop.orders", {"id": "BIGINT"}, primary_key=["id"])
    catalog.create_table("private.salaries", {"id": "BIGINT"})
    return catalog


@pytest.fixture
def served(catalog: Catalog, tmp_path: Path) -> ServedInProcess:
    return ServedInProcess(catalog, client_file(tmp_path))


def declared(name: str = "items", database: str = "staging", **schema: Any) -> dict[str, Any]:
    """Return the body of a request that creates a table."""
    whole = {"fields": FIELDS, "primaryKeys": ["id"], "partitionKeys": [], "options": {"bucket": "2"}, **schema}
    return {"identifier": {"database": database, "object": name}, "schema": whole}


def created(served: ServedInProcess, **schema: Any) -> None:
    answer = served.ask("POST", f"{ROOT}/staging/tables", "loader", json=declared(**schema))
    assert answer.status_code == 200, answer.text


def altered(served: ServedInProcess, *changes: dict[str, Any]) -> Any:
    return served.ask("POST", TABLE, "loader", json={"changes": list(changes)})


def test_a_client_creates_loads_and_drops_tables_of_its_database(catalog: Catalog, served: ServedInProcess) -> None:
    created(served, comment="what is sold")

    loaded = served.ask("GET", TABLE, "loader").json()
    table = catalog.load_table("staging.items")
    assert loaded["id"] == table.uuid
    assert (loaded["path"], loaded["isExternal"], loaded["schemaId"]) == (table.location, False, 0)
    assert [(each["name"], each["type"]) for each in loaded["schema"]["fields"]] == [
        ("id", "BIGINT NOT NULL"),
        ("item", "STRING"),
        ("tags", {"type": "ARRAY", "element": "STRING"}),
    ]
    assert loaded["schema"]["fields"][0]["description"] == "the key"
    assert loaded["schema"]["primaryKeys"] == ["id"]
    assert loaded["schema"]["comment"] == "what is sold"
    assert loaded["schema"]["options"]["bucket"] == "2"
    assert served.ask("GET", f"{ROOT}/staging/tables", "loader").json()["tables"] == ["items"]
    details = served.ask("GET", f"{ROOT}/staging/table-details", "loader").json()["tableDetails"]
    assert details == [loaded]
    again = served.ask("POST", f"{ROOT}/staging/tables", "loader", json=declared())
    assert (again.status_code, again.json()["resourceType"], again.json()["resourceName"]) == (409, "TABLE", "items")

    assert served.ask("DELETE", TABLE, "loader").status_code == 200
    for method in ("GET", "DELETE"):
        gone = served.ask(method, TABLE, "loader")
        assert (gone.status_code, gone.json()["resourceType"]) == (404, "TABLE")


def test_a_table_is_altered_by_all_changes_of_a_request_or_by_none(catalog: Catalog, served: ServedInProcess) -> None:
    created(served)
    answer = altered(
        served,
        {"action": "addColumn", "fieldNames": ["n"], "dataType": "INT", "comment": "count", "move": None},
        {
            "action": "addColumn",
            "fieldNames": ["first"],
            "dataType": "INT",
            "comment": None,
            "move": {"fieldName": "first", "referenceFieldName": None, "type": "FIRST"},
        },
        {"action": "renameColumn", "fieldNames": ["item"], "newName": "name"},
        {"action": "updateColumnType", "fieldNames": ["n"], "newDataType": "BIGINT", "keepNullability": False},
        {"action": "dropColumn", "fieldNames": ["tags"]},
        {"action": "updateColumnComment", "fieldNames": ["name"], "newComment": "its name"},
        {"action": "updateComment", "comment": "sold"},
        {"action": "setOption", "key": "num-sorted-run.compaction-trigger", "value": "3"},
        {"action": "removeOption", "key": "num-sorted-run.compaction-trigger"},
    )
    assert answer.status_code == 200, answer.text
    schema = catalog.load_table("staging.items").schema
    assert [(each.name, str(each.type)) for each in schema.fields] == [
        ("first", "INT"),
        ("id", "BIGINT NOT NULL"),
        ("name", "STRING"),
        ("n", "BIGINT"),
    ]
    assert (schema.comment, schema.field("name").description) == ("sold", "its name")

    for place in (
        {"referenceFieldName": "id", "type": "BEFORE"},
        {"referenceFieldName": None, "type": "LAST"},
        {"referenceFieldName": "id", "type": "AFTER"},
    ):
        assert (
            altered(served, {"action": "updateColumnPosition", "move": {"fieldName": "n", **place}}).status_code == 200
        )
    fields = catalog.load_table("staging.items").schema.fields
    assert [each.name for each in fields] == ["first", "id", "n", "name"]

    before = catalog.load_table("staging.items").schema
    for wrong in (
        {"action": "dropColumn", "fieldNames": ["nothing"]},
        {"action": "updateColumnType", "fieldNames": ["n"], "newDataType": "INT"},
        {"action": "setOption", "key": "log.kafka.bootstrap.servers", "value": "evil:9092"},
        {"action": "addColumn", "fieldNames": ["x"], "dataType": "NOTHING"},
        {"action": "addColumn", "fieldNames": ["x"], "dataType": {"type": "", "fields": []}},
    ):
        refused = altered(served, {"action": "addColumn", "fieldNames": ["other"], "dataType": "INT"}, wrong)
        assert refused.status_code == 400, refused.text
    for unknown in ("updateColumnDefaultValue", "dropPrimaryKey", "x"):
        assert altered(served, {"action": unknown, "fieldNames": ["n"]}).status_code == 501
    assert catalog.load_table("staging.items").schema == before


@pytest.mark.parametrize(
    "key",
    [
        "log.kafka.bootstrap.servers",
        "log.kafka.topic",
        "data-file.external-paths",
        "file.root-path",
        "materialized-table.definition-query",
        "column.total.expression",
        "log.schema-registry.url",
        "metadata.iceberg.uri",
        "path",
        "no-such-option",
    ],
)
def test_an_option_that_reaches_something_is_refused(catalog: Catalog, served: ServedInProcess, key: str) -> None:
    refused = served.ask("POST", f"{ROOT}/staging/tables", "loader", json=declared(options={key: "x"}))

    assert refused.status_code == 400
    assert key in refused.json()["message"]
    assert catalog.list_tables("staging") == []


def test_a_client_changes_no_database_but_its_own(catalog: Catalog, served: ServedInProcess) -> None:
    created(served)
    assert served.ask("GET", ROOT, "loader").json()["databases"] == ["shop", "staging"]
    rename = {"source": {"database": "staging", "object": "items"}, "destination": {"database": "shop", "object": "x"}}
    requests: list[tuple[str, str, Any]] = [
        ("POST", ROOT, {"name": "mine", "options": {}}),
        ("DELETE", f"{ROOT}/shop", None),
        ("POST", f"{ROOT}/shop/tables", declared(database="shop")),
        ("POST", f"{ROOT}/shop/tables/orders", {"changes": [{"action": "updateComment", "comment": "x"}]}),
        ("DELETE", f"{ROOT}/shop/tables/orders", None),
        ("POST", f"{ROOT}/shop/tables/orders/commit", {"snapshot": {}}),
        ("POST", f"{ROOT}/shop/tables/orders/rollback", {"instant": {"type": "snapshot", "snapshotId": 1}}),
        ("POST", "/paimon/v1/main/tables/rename", rename),
        ("POST", "/paimon/v1/main/tables/rename", {"source": rename["destination"], "destination": rename["source"]}),
        ("GET", f"{ROOT}/private", None),
        ("GET", f"{ROOT}/private/tables", None),
        ("GET", f"{ROOT}/private/tables/salaries", None),
        ("GET", f"{ROOT}/private/tables/salaries/snapshot", None),
    ]
    for method, path, body in requests:
        assert served.ask(method, path, "loader", json=body).status_code == 403, (method, path)
    moved = served.ask("POST", f"{ROOT}/staging/tables", "loader", json=declared("x", database="shop"))
    assert moved.status_code == 400
    assert sorted(catalog.list_tables()) == ["private.salaries", "shop.orders", "staging.items"]
    assert served.ask("GET", ROOT, "past").status_code == 401
    assert ServedInProcess(catalog).ask("POST", ROOT, None, json={"name": "x"}).status_code == 403


def test_databases_are_created_described_and_dropped(catalog: Catalog, tmp_path: Path) -> None:
    clients = client_file(tmp_path, f'[[client]]\nname = "all"\ntoken = "{TOKENS["loader"]}"\nwrite = ["*"]\n')
    served = ServedInProcess(catalog, clients)
    assert served.ask("POST", ROOT, "loader", json={"name": "new", "options": {"team": "sales"}}).status_code == 200
    again = served.ask("POST", ROOT, "loader", json={"name": "new", "options": {}})
    assert (again.status_code, again.json()["resourceType"]) == (409, "DATABASE")
    found = served.ask("GET", f"{ROOT}/new", "loader").json()
    assert (found["name"], found["options"]) == ("new", {"team": "sales"})
    assert found["location"] == str(tmp_path / "lake" / "new.db")
    changes = {"updates": {"team": "all", "owner": "ann"}, "removals": ["nothing"]}
    assert served.ask("POST", f"{ROOT}/new", "loader", json=changes).json() == {
        "removed": [],
        "updated": ["team", "owner"],
        "missing": ["nothing"],
    }
    removed = served.ask("POST", f"{ROOT}/new", "loader", json={"updates": {}, "removals": ["owner"]}).json()
    assert removed["removed"] == ["owner"]
    assert catalog.database_properties("new") == {"team": "all"}
    assert served.ask("POST", f"{ROOT}/new", "loader", json={"updates": {"location": "/"}}).status_code == 400
    assert served.ask("POST", ROOT, "loader", json={"name": "../x", "options": {}}).status_code == 400
    assert served.ask("POST", f"{ROOT}/missing/tables", "loader", json=declared(database="missing")).status_code == 404

    catalog.create_table("new.t", {"id": "BIGINT"})
    catalog.views.create(View(name="new.v", query="SELECT 1"), or_replace=False)
    kept = served.ask("DELETE", f"{ROOT}/new", "loader")
    assert kept.status_code == 409
    catalog.views.drop("new.v")
    assert served.ask("DELETE", f"{ROOT}/new", "loader").status_code == 200
    assert served.ask("DELETE", f"{ROOT}/new", "loader").status_code == 404
    assert "new" not in catalog.list_databases()


def test_names_are_listed_by_pattern_and_in_pages(catalog: Catalog, served: ServedInProcess) -> None:
    for name in ("a_1", "a_2", "ab1", "b"):
        catalog.create_table(f"staging.{name}", {"id": "BIGINT"})

    def listed(query: str) -> Any:
        return served.ask("GET", f"{ROOT}/staging/tables?{query}", "loader").json()

    assert listed("tableNamePattern=a%25")["tables"] == ["a_1", "a_2", "ab1"]
    assert listed("tableNamePattern=a%5C_%25")["tables"] == ["a_1", "a_2"]
    assert listed("tableNamePattern=b")["tables"] == ["b"]
    assert listed("tableType=view")["tables"] == []
    assert listed("tableNamePattern=%25b")["code"] == 400
    first = listed("maxResults=3")
    assert first["tables"] == ["a_1", "a_2", "ab1"]
    assert listed(f"maxResults=3&pageToken={first['nextPageToken']}") == {"tables": ["b"], "nextPageToken": None}
    assert served.ask("GET", f"{ROOT}?databaseNamePattern=s%25", "loader").json()["databases"] == ["shop", "staging"]


def test_a_commit_is_made_once_and_by_one_of_two(catalog: Catalog, served: ServedInProcess, tmp_path: Path) -> None:
    """The commit of an engine is a second one of this library, whose snapshot is deleted."""
    table = catalog.create_table("staging.items", {"id": "BIGINT"}, primary_key=["id"])
    empty = served.ask("GET", f"{TABLE}/snapshot", "loader")
    assert (empty.status_code, empty.json()["resourceType"]) == (404, "SNAPSHOT")
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    directory = tmp_path / "lake" / "staging.db" / "items" / "snapshot"
    made = json.loads((directory / "snapshot-2").read_text())
    first = json.loads((directory / "snapshot-1").read_text())
    (directory / "snapshot-2").unlink()
    (directory / "LATEST").unlink(missing_ok=True)
    body = {"tableId": table.uuid, "baseSnapshotUuid": first["uuid"], "snapshot": made, "statistics": []}

    def committed(**changed: Any) -> Any:
        return served.ask("POST", f"{TABLE}/commit", "loader", json={**body, **changed})

    assert served.ask("GET", f"{TABLE}/snapshot", "loader").json()["snapshot"]["snapshot"]["id"] == 1
    assert committed(tableId="another").json()["resourceType"] == "TABLE"
    assert committed(baseSnapshotUuid="another").json() == {"success": False}
    assert committed(snapshot={**made, "id": 3}).json() == {"success": False}
    for wrong in (
        None,
        {},
        {**made, "id": True},
        {**made, "id": "2"},
        {**made, "schemaId": 7},
        {**made, "commitKind": "NOTHING"},
        {**made, "deltaManifestList": "manifest-list-of-nobody"},
        {**made, "baseManifestList": "../snapshot/snapshot-1"},
        {**made, "indexManifest": "/etc/passwd"},
        {**made, "deltaManifestList": "\0"},
        {**made, "properties": {"a": [None]}},
    ):
        assert committed(snapshot=wrong).status_code == 400, wrong
    assert catalog.load_table("staging.items").to_arrow().num_rows == 1

    assert committed().json() == {"success": True}
    assert committed().json() == {"success": True}
    assert committed(snapshot={**made, "commitUser": "another"}).json() == {"success": False}
    assert catalog.load_table("staging.items").to_arrow().num_rows == 2
    assert served.ask("GET", f"{TABLE}/snapshot", "loader").json()["snapshot"]["recordCount"] == 2


def test_a_rollback_restores_rows_in_a_new_snapshot(catalog: Catalog, served: ServedInProcess) -> None:
    table = catalog.create_table("staging.items", {"id": "BIGINT"}, primary_key=["id"])
    table.append([{"id": 1}])
    table.tags.create("first")
    table.append([{"id": 2}])

    def rolled_back(**instant: Any) -> Any:
        return served.ask("POST", f"{TABLE}/rollback", "loader", json={"instant": instant})

    assert rolled_back(type="tag", tagName="first").status_code == 200
    assert catalog.load_table("staging.items").to_arrow().num_rows == 1
    assert rolled_back(type="snapshot", snapshotId=2).status_code == 200
    assert catalog.load_table("staging.items").to_arrow().num_rows == 2
    assert rolled_back(type="snapshot", snapshotId=99).json()["resourceType"] == "SNAPSHOT"
    assert rolled_back(type="tag", tagName="nothing").json()["resourceType"] == "TAG"
    assert rolled_back(type="moment").status_code == 400
    catalog.load_table("staging.items").maintenance.expire_snapshots(retain_last=1)
    assert rolled_back(type="snapshot", snapshotId=2).json()["resourceType"] == "SNAPSHOT"


def test_a_table_without_a_key_is_one_of_paimons_append_tables(catalog: Catalog, served: ServedInProcess) -> None:
    created(served, primaryKeys=[], options={})
    assert catalog.load_table("staging.items").schema.is_append_only


def test_what_is_not_supported_is_left_to_the_client(served: ServedInProcess) -> None:
    created(served)
    for path in ("partitions", "token", "consumers"):
        assert served.ask("GET", f"{TABLE}/{path}", "loader").status_code == 501
    config = served.ask("GET", "/paimon/v1/config?warehouse=main", "loader").json()
    assert config["overrides"] == {"prefix": "main", "data-token.enabled": "false"}
    assert served.ask("GET", "/paimon/v1/config?warehouse=other", "loader").status_code == 400
    assert served.ask("GET", "/paimon/v1/other/databases", "loader").status_code == 404


def test_of_commits_at_once_one_wins(catalog: Catalog, served: ServedInProcess, tmp_path: Path) -> None:
    table = catalog.create_table("staging.items", {"id": "BIGINT"}, primary_key=["id"])
    table.append([{"id": 1}])
    directory = tmp_path / "lake" / "staging.db" / "items" / "snapshot"
    made = json.loads((directory / "snapshot-1").read_text())

    def committed(number: int) -> bool:
        body = {"snapshot": {**made, "id": 2, "uuid": f"uuid-{number}", "commitUser": f"engine-{number}"}}
        answer = served.ask("POST", f"{TABLE}/commit", "loader", json=body)
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["success"])

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(committed, range(8)))

    winner = json.loads((directory / "snapshot-2").read_text())["commitUser"]
    assert [f"engine-{number}" for number, won in enumerate(answers) if won] == [winner]


def test_tags_name_snapshots(catalog: Catalog, served: ServedInProcess) -> None:
    table = catalog.create_table("staging.items", {"id": "BIGINT"}, primary_key=["id"])
    table.append([{"id": 1}])
    table.append([{"id": 2}])

    def asked(method: str, path: str = "", **body: Any) -> Any:
        return served.ask(method, f"{TABLE}/tags{path}", "loader", json=body or None)

    assert asked("POST", tagName="first", snapshotId=1).status_code == 200
    assert asked("POST", tagName="newest", timeRetained="1 d").status_code == 200
    assert asked("GET").json() == {"tags": ["first", "newest"], "nextPageToken": None}
    assert asked("GET", "?tagNamePrefix=f").json()["tags"] == ["first"]
    found = asked("GET", "/first").json()
    assert (found["tagName"], found["snapshot"]["id"], found["tagTimeRetained"]) == ("first", 1, None)
    assert asked("GET", "/newest").json()["tagTimeRetained"] == "86400000 ms"
    for refused, status, resource in (
        (asked("POST", tagName="first"), 409, "TAG"),
        (asked("POST", tagName="other", snapshotId=9), 404, "SNAPSHOT"),
        (asked("POST", tagName="12"), 400, None),
        (asked("POST", tagName="other", snapshotId=True), 400, None),
        (asked("POST", tagName="other", timeRetained="soon"), 400, None),
        (asked("GET", "/nothing"), 404, "TAG"),
        (asked("DELETE", "/nothing"), 404, "TAG"),
        (served.ask("DELETE", f"{TABLE}/tags/first", "reports"), 403, None),
    ):
        assert (refused.status_code, refused.json()["resourceType"]) == (status, resource)
    assert asked("DELETE", "/first").status_code == 200
    assert [each.name for each in table.tags.list()] == ["newest"]


def test_branches_are_created_written_forwarded_and_dropped(catalog: Catalog, served: ServedInProcess) -> None:
    table = catalog.create_table("staging.items", {"id": "BIGINT"}, primary_key=["id"])
    table.append([{"id": 1}])

    def asked(method: str, path: str = "", **body: Any) -> Any:
        return served.ask(method, f"{TABLE}/branches{path}", "loader", json=body or None)

    assert asked("POST", branch="dev", fromTag=None).status_code == 200
    assert asked("GET").json() == {"branches": ["dev"]}
    loaded = served.ask("GET", f"{TABLE}$branch_dev", "loader").json()
    assert loaded["name"] == "items$branch_dev"
    table.branches.open("dev").append([{"id": 2}])
    assert asked("POST", "/dev/forward").status_code == 200
    assert catalog.load_table("staging.items").to_arrow().num_rows == 2
    for refused, status, resource in (
        (asked("POST", branch="dev"), 409, "BRANCH"),
        (asked("POST", branch="other", fromTag="nothing"), 404, "TAG"),
        (asked("POST", branch="12"), 400, None),
        (asked("DELETE", "/nothing"), 404, "BRANCH"),
        (asked("POST", "/nothing/forward"), 404, "BRANCH"),
        (served.ask("DELETE", f"{TABLE}/branches/dev", "reports"), 403, None),
    ):
        assert (refused.status_code, refused.json()["resourceType"]) == (status, resource)
    assert asked("DELETE", "/dev").status_code == 200
    assert table.branches.list() == ()
