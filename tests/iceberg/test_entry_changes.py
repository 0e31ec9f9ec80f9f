"""Requests to REST catalogs of others, some of which keep less of a table than that of Iceberg's own tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests

from storage_lib import AddColumn, DynamicTable, open_catalog
from tests.support.extras import needs
from tests.support.iceberg_readers import metadata_of

pytestmark = needs("pyiceberg")


def a_table(warehouse: Path) -> DynamicTable:
    """Create a table with a view that shows three snapshots."""
    options = {"metadata.iceberg.storage": "table-location", "log.system": "none"}
    table = open_catalog(str(warehouse)).create_table("d.t", {"id": "BIGINT"}, primary_key=["id"], options=options)
    for number in range(3):
        table.append([{"id": number}])
    return table


def shown(table: DynamicTable) -> Any:
    """Return the newest metadata, as PyIceberg decodes it."""
    from pyiceberg.table.metadata import TableMetadataUtil

    return TableMetadataUtil.parse_raw(shown_text(table))


def shown_text(table: DynamicTable) -> str:
    newest = table.inspect.latest_snapshot_id()
    assert newest is not None
    return Path(metadata_of(table, newest)).read_text()


def test_snapshots_that_a_catalog_does_not_keep_are_not_added_again(tmp_path: Path) -> None:
    # Nessie keeps the snapshot that was added last, and would show an older one.
    from storage_lib.iceberg.register.entry_changes import updates_of

    table = a_table(tmp_path)
    before = shown(table)
    table.tags.create("first", 1)
    main = {"main": before.refs["main"]}
    entry = before.model_copy(update={"snapshots": before.snapshots[-1:], "refs": main})

    assert updates_of(entry, shown(table)) == ()

    table.append([{"id": 9}])
    updates = updates_of(entry, shown(table))
    assert updates is not None
    assert [each.snapshot.snapshot_id for each in updates if each.action == "add-snapshot"] == [4]
    assert [each.ref_name for each in updates if each.action == "set-snapshot-ref"] == ["main"]


def test_an_entry_whose_location_the_catalog_resolves_elsewhere_is_registered_again(tmp_path: Path) -> None:
    from storage_lib.iceberg.register.entry_changes import updates_of

    table = a_table(tmp_path)
    entry = shown(table).model_copy(update={"location": "lake/d.db/t"})

    assert updates_of(entry, shown(table)) is None


def test_a_new_schema_is_sent_with_the_highest_id_of_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.table import Table

    from storage_lib.iceberg.register.entry_changes import requirements_of, updates_of
    from storage_lib.iceberg.register.rest_client import RestClient

    table = a_table(tmp_path)
    before = shown(table)
    wanted = shown(table.alter(AddColumn("n", "INT")))
    sent: list[Any] = []

    def answered(_: object, request: requests.PreparedRequest, **__: object) -> requests.Response:
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = 200, request, request.url or ""
        body: dict[str, Any] = {"defaults": {}, "overrides": {}}
        if request.method == "POST":
            assert isinstance(request.body, bytes)
            sent.append(json.loads(request.body))
            body = {"metadata": json.loads(shown_text(table)), "metadata-location": "there"}
        answer._content = json.dumps(body).encode()
        return answer

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", answered)
    client = RestClient("stub", {"uri": "http://127.0.0.1:1"})
    entry = Table(("d", "t"), before, "there", client._load_file_io(), client)
    updates = updates_of(before, wanted)
    assert updates is not None
    client.commit_table(entry, requirements_of(before), updates)

    (schema,) = (each for each in sent[0]["updates"] if each["action"] == "add-schema")
    assert schema["last-column-id"] == before.last_column_id
    assert [each["name"] for each in schema["schema"]["fields"]] == ["id", "n"]
