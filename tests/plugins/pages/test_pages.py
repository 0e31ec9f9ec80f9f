"""Responses of the pages' server, without a browser and without a running Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table.pages import catalog_board
from dynamic_table.pages import pages_app as pages
from dynamic_table.pages.catalog_board import CatalogBoard
from dynamic_table.quality.data_docs import DataDocs
from dynamic_table.sinks.sink_job import open_job_directory
from storage_lib import open_catalog
from storage_lib.errors import UnavailableError
from storage_lib.table.inspect.table_health import TableHealth
from storage_lib.table.namespaces.table_inspection import TableInspection
from tests.support.asgi_client import AsgiClient

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.date32(), nullable=False)])


@pytest.fixture
def client(warehouse: Path) -> Iterator[AsgiClient]:
    """Return the client of a user who may read Airflow's assets."""
    [guard] = pages.app.router.dependencies
    assert guard.dependency is not None
    pages.app.dependency_overrides[guard.dependency] = lambda: None
    yield AsgiClient(pages.app)
    pages.app.dependency_overrides.clear()


def fill(warehouse: Path, name: str) -> Any:
    table = open_catalog(str(warehouse)).create_table(
        name, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options={"log.system": "none"}
    )
    table.append(pa.table({"id": [1, 2], "day": pa.array([0, 1], pa.date32())}))
    return table


def test_nobody_sees_anything_without_having_logged_in(tmp_path: Path) -> None:
    paths = ["/dynamic-tables/tables", "/dynamic-tables/table?name=a.b", "/dynamic-tables/api/tables",
             "/dynamic-tables/api/table?name=a.b", "/dynamic-tables/api/graph?name=a.b",
             "/dynamic-tables/static/common.js",
             "/dynamic-tables/docs/dynamic_table_default/a.b/index.html"]  # fmt: skip
    asked = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.anonymous_requests", *paths],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(tmp_path / "plugins"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(asked.stdout.splitlines()[-1]) == dict.fromkeys(paths, 401)


def test_the_list_and_a_table_are_json_that_says_what_there_is(client: AsgiClient, warehouse: Path) -> None:
    fill(warehouse, "shop.orders")

    [row] = client.get("/api/tables").json()["tables"]
    view = client.get("/api/table", params={"name": "shop.orders"}).json()

    assert (row["name"], row["file_count"], row["row_count"], row["log"]) == ("shop.orders", 2, 2, {"state": "none"})
    assert [(each["values"]["day"], each["record_count"]) for each in view["partitions"]] == [
        ("1970-01-01", 1),
        ("1970-01-02", 1),
    ]
    assert [each["commit_kind"] for each in view["snapshots"]] == ["APPEND"]
    assert [(each["runs"], each["levels"][0]["files"]) for each in view["buckets"]] == [(1, 1), (1, 1)]
    assert (view["bucket_count"], view["partition_count"], view["health"]["snapshot_id"]) == (2, 2, 1)


def test_a_table_that_was_made_anew_is_shown_as_it_is_now(client: AsgiClient, warehouse: Path) -> None:
    table = fill(warehouse, "shop.orders")
    table.append(pa.table({"id": [3], "day": pa.array([0], pa.date32())}))
    assert client.get("/api/tables").json()["tables"][0]["snapshot_id"] == 2
    open_catalog(str(warehouse)).drop_table("shop.orders")
    assert client.get("/api/tables").json()["tables"] == []
    fill(warehouse, "shop.orders")

    assert client.get("/api/tables").json()["tables"][0]["snapshot_id"] == 1


def test_what_is_wrong_is_told_in_words(client: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = client.get("/api/table", params={"name": "shop.nothing"})
    assert (gone.status_code, "table shop.nothing does not exist" in gone.json()["error"]) == (404, True)

    def unreachable(_board: CatalogBoard) -> None:
        raise UnavailableError("the store does not answer")

    monkeypatch.setattr(CatalogBoard, "rows", unreachable)
    down = client.get("/api/tables")
    assert (down.status_code, down.json()) == (503, {"error": "UnavailableError: the store does not answer"})


def test_a_log_is_asked_in_the_background_and_its_outage_is_shown(warehouse: Path) -> None:
    table = fill(warehouse, "shop.orders")
    board = CatalogBoard(open_catalog(str(warehouse)))
    answers = iter([{"log end": "unknown: no broker"}, {"log end": "{}", "log records not yet in files": "7"}])
    table.log = object()
    table.describe = lambda: next(answers)

    def said() -> dict[str, Any]:
        found = board._log("shop.orders", table)
        board._log_looks.submit(int).result()
        return found

    board._log_looks._max_workers = 1
    assert [said(), said(), said()] == [
        {"state": "asked"},
        {"state": "error", "error": "unknown: no broker"},
        {"state": "ok", "lag": 7},
    ]


def test_a_page_does_not_wait_for_a_broker_that_does_not_answer(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(warehouse, "shop.orders")
    board = CatalogBoard(open_catalog(str(warehouse)))
    table = board._table("shop.orders")
    describe, answers = table.describe, threading.Event()
    monkeypatch.setattr(catalog_board, "DESCRIBE_SECONDS", 0.01)
    monkeypatch.setattr(table, "describe", lambda: describe() if answers.wait(60) else {})

    waiting = board.view("shop.orders")
    answers.set()
    monkeypatch.setattr(catalog_board, "DESCRIBE_SECONDS", 60)

    assert (waiting["describe"]["log end"], waiting["health"]["file_count"]) == (
        "unknown: Kafka has not answered yet",
        2,
    )
    assert board.view("shop.orders")["describe"]["num-files"] == "2"


def test_the_list_does_not_wait_for_a_table_that_takes_long(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(warehouse, "shop.orders")
    fill(warehouse, "shop.slow")
    board = CatalogBoard(open_catalog(str(warehouse)))
    slow, answers = board._table("shop.slow"), threading.Event()
    health = TableInspection.health

    def late_health(inspection: TableInspection) -> TableHealth | None:
        return health(inspection) if inspection is not slow.inspect or answers.wait(60) else None

    monkeypatch.setattr(TableInspection, "health", late_health)
    monkeypatch.setattr(catalog_board, "LOOK_SECONDS", 0.01)

    quick, late = board.rows()
    while "file_count" not in quick:
        quick, late = board.rows()
    answers.set()
    monkeypatch.setattr(catalog_board, "LOOK_SECONDS", 60)

    assert late == {"name": "shop.slow", "is_late": True}
    assert [(row["name"], row["file_count"], "is_late" in row) for row in board.rows()] == [
        ("shop.orders", 2, False),
        ("shop.slow", 2, False),
    ]


def test_a_tables_sink_and_its_last_validation_stand_beside_it(
    client: AsgiClient, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(warehouse, "shop.orders")
    fill(warehouse, "shop.quiet")
    extra: dict[str, Any] = {"warehouse": str(warehouse), "options": {"log.system": "none"}}
    extra["docs_directory"] = str(tmp_path / "docs")
    extra |= {"jobs_directory": str(tmp_path / "jobs"), "publish_pages": True}
    connection = json.dumps({"conn_type": "dynamic_table", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", connection)
    job = open_job_directory(tmp_path / "jobs" / "shop.orders")
    noted = {"snapshot_id": 1, "millis": 5, "rows": 2, "checked": 3, "failed": {"critical": 1}, "lines": ["id is null"]}
    DataDocs(root=tmp_path / "docs", table="shop.orders").note_last({**noted, "partition": None, "page": "a/b.html"})

    def sinks() -> dict[str, Any]:
        return {row["name"]: row["sink"] for row in client.get("/api/tables").json()["tables"]}

    assert sinks() == {
        "shop.orders": {
            "state": "starting",
            "job": "job-0001",
            "age_seconds": None,
            "task": None,
            "log": "shop.orders/job-0001/log.txt",
        },
        "shop.quiet": None,
    }
    task = {"dag_id": "stream", "run_id": "manual", "task_id": "stream_sink", "map_index": -1}
    job.note_task(dag_id="stream", run_id="manual", task_id="stream_sink", map_index=-1)
    assert sinks()["shop.orders"]["task"] == task
    job.heartbeat_path.write_text(json.dumps({"state": "RUNNING", "batch_id": 7, "error": None}))
    running = sinks()["shop.orders"]
    assert (running["state"], running["batch_id"], "error" in running) == ("running", 7, False)
    job.stop_path.write_text("enough")
    assert sinks()["shop.orders"]["state"] == "stopping"
    long_ago = job.heartbeat_path.stat().st_mtime - 1000
    os.utime(job.heartbeat_path, (long_ago, long_ago))
    assert sinks()["shop.orders"]["state"] == "silent"
    job.heartbeat_path.write_text(json.dumps({"state": "FAILED", "error": "OutOfMemoryError: <b>"}))

    view = client.get("/api/table", params={"name": "shop.orders"}).json()
    quiet = client.get("/api/table", params={"name": "shop.quiet"}).json()
    assert (view["sink"]["state"], view["sink"]["error"]) == ("failed", "OutOfMemoryError: <b>")
    url = "/dynamic-tables/docs/dynamic_table_default/shop.orders/a/b.html"
    assert view["validation"] == {**noted, "partition": None, "url": url}
    assert (quiet["sink"], quiet["validation"]) == (None, None)


def test_files_other_than_the_pages_own_are_not_handed_out(client: AsgiClient) -> None:
    assert client.get("/static/common.js").status_code == 200
    for path in ("/static/..%2Fapp.py", "/static/tables.html", "/static/nothing.js", "/docs", "/openapi.json"):
        assert client.get(path).status_code == 404, path
    assert client.request("POST", "/api/tables").status_code == 405


def test_no_script_but_the_pages_own_would_run(client: AsgiClient) -> None:
    page = client.get("/tables")

    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    assert "unsafe" not in page.headers["content-security-policy"]
    for static in (ROOT / "plugins/dynamic_table/pages/static").glob("*.*"):
        if static.suffix in (".html", ".js") and not static.name.startswith("uPlot"):
            assert "innerHTML" not in static.read_text(), static
            assert "://" not in static.read_text().replace("dynamic-table://", ""), static
