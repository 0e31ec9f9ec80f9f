"""Expectations come from the table's file; results are stored by snapshot and have a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.operators.validate_table import DataQualityError, ValidateTableOperator
from dynamic_table.pages import pages_app as pages
from dynamic_table.quality import data_docs
from dynamic_table.quality.data_docs import DataDocs
from dynamic_table.quality.docs_index import STYLE, docs_index
from dynamic_table.quality.expectation_suites import expectations_of
from storage_lib.errors import InvalidInputError
from tests.support.asgi_client import AsgiClient
from tests.support.task_context import task_context

if TYPE_CHECKING:
    from tests.support.recording_table import RecordingTable

# Great Expectations imports deprecated names
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NOT_NULL = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "v"}}
TOO_FEW = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 3}, "severity": "warning"}


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataDocs:
    """Return the store of results for ``db.t``."""
    extra = {"warehouse": str(tmp_path), "docs_directory": str(tmp_path / "docs"), "publish_pages": True}
    connection = {"conn_type": "dynamic_table", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps(connection))
    return DataDocs(root=tmp_path / "docs", table="db.t")


def test_a_tables_expectations_are_in_the_file_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "expectations"
    folder.mkdir()
    (folder / "db.t.json").write_text(json.dumps({"name": "exported", "expectations": [NOT_NULL]}))
    (folder / "db.u.yaml").write_text("- {type: expect_column_to_exist, kwargs: {column: id}, severity: info}\n")

    assert expectations_of(None, "db.t", tmp_path) == [NOT_NULL]
    assert expectations_of("None", "db.u", tmp_path) == [
        {"type": "expect_column_to_exist", "kwargs": {"column": "id"}, "severity": "info"}
    ]
    assert expectations_of("expectations/db.t.json", "db.u", tmp_path) == [NOT_NULL]
    assert expectations_of([TOO_FEW], "db.t", tmp_path) == [TOO_FEW]
    with pytest.raises(InvalidInputError, match=r"expectations/db\.v\.yaml"):
        expectations_of(None, "db.v", tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"", "contains no list of expectations"),
        (b"expectations:", "contains no list of expectations"),
        (b"expectation: [{type: expect_x}]", "contains no list of expectations"),
    ],
)
def test_a_broken_suite_is_told_by_its_file(tmp_path: Path, content: bytes, said: str) -> None:
    suite = tmp_path / "expectations" / "db.t.yaml"
    suite.parent.mkdir()
    suite.write_bytes(content)

    with pytest.raises(InvalidInputError, match=f"{suite} {said}"):
        expectations_of(None, "db.t", tmp_path)


def test_what_was_found_is_kept_with_its_snapshot_and_leads_to_a_page(
    table: RecordingTable, docs: DataDocs, tmp_path: Path
) -> None:
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "db.t.json").write_text(json.dumps([NOT_NULL, TOO_FEW]))
    task = ValidateTableOperator(task_id="validate", table="db.t")
    context = task_context(task, folder=tmp_path)

    result = task.execute(context)
    task.snapshot_id = 8
    task.execute(task_context(task, folder=tmp_path))

    assert (result["version"], result["failed"]["warning"]) == (table.new_read().plan().snapshot.id, 1)
    found = {path.parts[-3]: json.loads(path.read_text()) for path in docs.project.rglob("table-rows.json")}
    assert sorted(found) == ["snapshot-7", "snapshot-8"]
    assert [one["success"] for one in found["snapshot-7"]["results"]] == [True, False]
    link = context["ti"].pushed["_link_DataDocsLink"]  # type: ignore[attr-defined]  # the test's own
    assert link == result["docs"]
    assert link.startswith("/dynamic-tables/docs/dynamic_table_default/db.t/validations/db/t/snapshot-7/")
    assert link.endswith("/table-rows.html")
    [page] = docs.site.glob("validations/db/t/snapshot-7/*/table-rows.html")
    assert STYLE.read_text().strip() in page.read_text()
    last = docs.last()
    assert last is not None
    assert (last["snapshot_id"], last["checked"], last["failed"]["warning"], len(last["lines"])) == (8, 2, 1, 1)
    assert last["page"].startswith("validations/db/t/snapshot-8/")
    listed = docs_index(docs)
    assert listed.index("/snapshot-8/") < listed.index("/snapshot-7/")
    assert listed.count("not met") == 2


def test_a_task_that_fails_has_its_page_too(table: RecordingTable, docs: DataDocs, tmp_path: Path) -> None:
    task = ValidateTableOperator(
        task_id="validate", table=table.name, expectations=[{**TOO_FEW, "severity": "critical"}]
    )
    context = task_context(task, folder=tmp_path)

    with pytest.raises(DataQualityError):
        task.execute(context)

    assert context["ti"].pushed["_link_DataDocsLink"]  # type: ignore[attr-defined]  # the test's own
    assert docs.page_of("snapshot-7")


@pytest.fixture
def client() -> Any:
    """Return the client of a user who may read Airflow's assets."""
    [guard] = pages.app.router.dependencies
    assert guard.dependency is not None
    pages.app.dependency_overrides[guard.dependency] = lambda: None
    yield AsgiClient(pages.app)
    pages.app.dependency_overrides.clear()


def test_a_page_is_shown_without_its_scripts_and_nothing_beside_it(client: AsgiClient, docs: DataDocs) -> None:
    docs.site.mkdir(parents=True)
    (docs.site / "found.html").write_text("<h1>found</h1>")
    (docs.root / "secret.txt").write_text("secret")
    base = "/docs/dynamic_table_default"

    page = client.get(f"{base}/db.t/found.html")

    assert (page.status_code, page.text) == (200, "<h1>found</h1>")
    policy = page.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "default-src 'none'" in policy
    for path in ("db.t/none.html", "db.t/../../../../secret.txt", "db.t/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret.txt",
                 "%2e%2e/secret.txt", "db.u/index.html"):  # fmt: skip
        assert client.get(f"{base}/{path}").status_code == 404, path


def test_the_list_of_validations_needs_no_script_and_takes_names_for_text(client: AsgiClient, docs: DataDocs) -> None:
    run = Path("validations", "db", "t", "<b>&7", "20261122T110406.1Z", "table-rows.html")
    for kept, text in ((docs.site / run, ""), (docs.site.parents[1] / run.with_suffix(".json"), '{"success": true}')):
        kept.parent.mkdir(parents=True)
        kept.write_text(text)
    (docs.site / "index.html").write_text("made by a script")

    page = client.get("/docs/dynamic_table_default/db.t/index.html").text

    assert "<script" not in page
    assert "<b>" not in page
    assert 'href="validations/db/t/%3Cb%3E%267/20261122T110406.1Z/table-rows.html">&lt;b&gt;&amp;7</a>' in page
    assert "2026-11-22 11:04:06 UTC" in page
    assert ">met<" in page


def test_only_the_newest_results_are_kept(docs: DataDocs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_docs, "RESULTS_MAX", 2)
    kept = docs.project / "gx" / "uncommitted" / "validations" / "db" / "t"
    for number in (1, 2, 3):
        run = kept / f"snapshot-{number}" / f"2026010{number}T000000.000000Z"
        run.mkdir(parents=True)
        (run / "table-rows.json").touch()

    with docs.lock():
        pass

    assert sorted(path.parts[-3] for path in kept.rglob("*.json")) == ["snapshot-2", "snapshot-3"]
