"""The pages open published connections only, and do not reveal which other ids exist."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamic_table.hook import DynamicTableHook
from dynamic_table.pages import pages_app as pages
from dynamic_table.pages.catalog_board import CatalogBoard
from dynamic_table.pages.published_connection import NotPublishedError, published_hook
from dynamic_table.quality.data_docs import DataDocs
from storage_lib.errors import UnavailableError
from tests.support.asgi_client import AsgiClient


@pytest.fixture
def client() -> Iterator[AsgiClient]:
    """Return the client of a viewer: a user who may read Airflow's assets."""
    [guard] = pages.app.router.dependencies
    assert guard.dependency is not None
    pages.app.dependency_overrides[guard.dependency] = lambda: None
    yield AsgiClient(pages.app)
    pages.app.dependency_overrides.clear()


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Define ids that a viewer must not be able to distinguish; each warehouse contains a validation."""
    ours = {"warehouse": str(tmp_path), "docs_directory": str(tmp_path / "docs"), "options": {"log.system": "none"}}
    given: dict[str, Any] = {
        "not_published": {"conn_type": "dynamic_table", "extra": ours},
        "refused": {"conn_type": "dynamic_table", "extra": {**ours, "publish_pages": False}},
        "other_type": {"conn_type": "http", "host": "inner.example", "extra": {**ours, "publish_pages": True}},
        "without_extra": {"conn_type": "postgres", "login": "ann", "password": "sesame"},
        "invalid_extra": {"conn_type": "dynamic_table", "extra": "[1]"},
    }
    for name, connection in given.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_CONN_INVALID_JSON", "{")
    page = DataDocs(root=tmp_path / "docs", table="db.t").site / "page.html"
    page.parent.mkdir(parents=True)
    page.write_text("a validation")
    return [*given, "invalid_json", "unknown"]


def test_every_id_that_is_not_published_gets_the_same_answer(client: AsgiClient, hidden: list[str]) -> None:
    for path in ("/api/tables?connection={}", "/api/table?name=db.t&connection={}", "/docs/{}/db.t/page.html"):
        answers = {}
        for name in hidden:
            answer = client.get(path.format(name))
            answers[name] = (answer.status_code, answer.text.replace(name, "ID"), dict(answer.headers).keys())

        assert {status for status, _, _ in answers.values()} == {404}, path
        assert all(answer == answers["unknown"] for answer in answers.values()), answers


def test_a_published_connection_is_opened(client: AsgiClient, warehouse: Path) -> None:
    assert client.get("/api/tables").json() == {"tables": []}
    assert published_hook("dynamic_table_default").warehouse == str(warehouse)


def test_the_form_of_a_connection_publishes_it_by_a_switch(monkeypatch: pytest.MonkeyPatch, warehouse: Path) -> None:
    for written, is_published in ((True, True), ("true", True), (False, False), ("false", False), (None, False)):
        extra = {"warehouse": str(warehouse), "publish_pages": written}
        connection = {"conn_type": "dynamic_table", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
        if is_published:
            assert published_hook("lake").dynamic_table_conn_id == "lake"
        else:
            with pytest.raises(NotPublishedError, match="publish_pages"):
                published_hook("lake")


def test_nothing_is_listed_or_opened_for_a_connection_that_is_not_published(
    client: AsgiClient, hidden: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(_hook: DynamicTableHook) -> None:
        raise AssertionError("the catalog was opened")

    monkeypatch.setattr(DynamicTableHook, "get_conn", opened)

    assert [client.get(f"/api/tables?connection={name}").status_code for name in hidden] == [404] * len(hidden)


def test_errors_of_libraries_show_their_type_only(
    client: AsgiClient, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_board: CatalogBoard) -> None:
        raise RuntimeError("could not connect to postgresql://ann:sesame@inner.example/db")

    monkeypatch.setattr(CatalogBoard, "rows", failing)
    answer = client.get("/api/tables")

    assert answer.status_code == 503
    assert answer.json() == {"error": "RuntimeError; the API server's log has the details"}


def test_no_error_that_a_page_shows_holds_a_secret(
    client: AsgiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables" / "db.db" / "t").mkdir(parents=True)
    extra: dict[str, Any] = {"warehouse": str(tmp_path / "tables"), "publish_pages": True}
    extra["secret_options"] = {"s3.secret-key": "sesame-open"}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    def refused(_catalog: object, *_: object) -> None:
        raise error

    for error in (
        UnavailableError("the store refused sesame-open at s3://ann:p@ss@host"),
        RuntimeError("sesame-open"),
    ):
        monkeypatch.setattr("storage_lib.catalog.catalog.Catalog.load_table", refused)
        monkeypatch.setattr("storage_lib.catalog.catalog.Catalog.list_tables", lambda *_: ["db.t"])
        row, of_table = client.get("/api/tables?connection=lake"), client.get("/api/table?name=db.t&connection=lake")
        monkeypatch.setattr("storage_lib.catalog.catalog.Catalog.list_tables", refused)
        for answer in (row, of_table, client.get("/api/tables?connection=lake")):
            assert type(error).__name__ in answer.text
            assert "sesame" not in answer.text
            assert "p@ss" not in answer.text


def test_an_address_that_no_file_can_have_is_no_page(client: AsgiClient, tmp_path: Path, monkeypatch: Any) -> None:
    extra = {"warehouse": str(tmp_path), "docs_directory": str(tmp_path / "docs"), "publish_pages": True}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    for path in ("/docs/lake/db.t/%00", "/docs/lake/db%00t/page.html", f"/docs/lake/db.t/{'a' * 5000}"):
        assert client.get(path).status_code == 404
