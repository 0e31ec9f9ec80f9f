"""The pages in a real browser, served by a real Airflow: content, buttons and access control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from airflow_rest import AirflowRest
from dynamic_table.sinks.sink_job import open_job_directory
from local_airflow import LocalAirflow
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition, RefreshStatus
from tests.support.chromium import PROGRAM, Chromium

if TYPE_CHECKING:
    from storage_lib import Catalog, DynamicTable

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.integration,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here: run `apt-get install chromium`"),
]

HOSTILE = '"><img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'
COLUMNS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture(scope="module")
def visits(catalog: Catalog) -> DynamicTable:
    """Create a table whose comment and partition contain scripts, with three runs to compact."""
    table = catalog.create_table(
        "pages.visits",
        COLUMNS,
        primary_key=["day", "id"],
        partition_by=["day"],
        options={"bucket": "1", "write-only": "true"},
        comment=HOSTILE,
    )
    for count in (3, 2, 1):
        days = ["2026-11-01"] * count + [HOSTILE]
        table.append(pa.table({"day": days, "id": pa.array(range(count + 1), pa.int64())}))
    return table


@pytest.fixture(scope="module")
def broken(catalog: Catalog, visits: DynamicTable) -> DynamicTable:
    """Create a table whose newest snapshot is unreadable."""
    table = catalog.create_table("pages.broken", COLUMNS, primary_key=["day", "id"])
    table.append(pa.table({"day": ["a"], "id": [1]}))
    for path in Path(table.location, "snapshot").glob("snapshot-*"):
        path.write_text("{")
    return visits


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, rest: AirflowRest) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as chromium:
        chromium.log_in(rest.base_url, rest.user, rest.password)
        yield chromium


@pytest.fixture(scope="module")
def counted(catalog: Catalog) -> DynamicTable:
    """Create a source, and a materialized table over it that was not refreshed yet."""
    source = catalog.create_table("watched.clicks", {"id": "BIGINT", "page": "STRING"}, primary_key=["id"])
    source.append(pa.table({"id": pa.array([1, 2], pa.int64()), "page": ["a", "b"]}))
    definition = MaterializedTableDefinition(
        query="SELECT page, count(*) AS n FROM watched.clicks WHERE page <> '<b id=\"bold\">' GROUP BY page",
        database="watched",
        sources=("watched.clicks",),
    )
    columns = {"page": "STRING", "n": "BIGINT"}
    return catalog.create_table("watched.counted", columns, primary_key=["page"], options=definition.to_options())


def opened(browser: Chromium, rest: AirflowRest, page: str) -> Chromium:
    browser.resize(1280, 900)
    browser.open(f"{rest.base_url}/dynamic-tables/{page}")
    return browser


def names(browser: Chromium) -> list[str]:
    found: list[str] = browser.run(
        "[...document.querySelectorAll('#rows tr td:first-child')].map((each) => each.innerText)"
    )
    return [name for name in found if name.startswith("pages.")]


def test_the_list_shows_every_tables_health_and_the_error_of_a_broken_one(
    browser: Chromium, rest: AirflowRest, broken: DynamicTable
) -> None:
    opened(browser, rest, "tables").wait_for("document.body.innerText.includes('pages.visits')")

    assert names(browser) == ["pages.broken", "pages.visits"]
    texts = browser.run("[...document.querySelectorAll('#rows tr')].map((row) => row.innerText)")
    rows = {text.split()[0]: text for text in texts}
    assert "CorruptFileError" in rows["pages.broken"]
    assert "snapshot-1 is not JSON" in rows["pages.broken"]
    assert [word for word in rows["pages.visits"].split() if word.isdigit()][-2:] == ["6", "3"], "files, runs"
    assert "broken" in browser.run("document.getElementById('summary').innerText")


def test_the_list_is_searched_and_sorted_from_the_keyboard(
    browser: Chromium, rest: AirflowRest, broken: DynamicTable
) -> None:
    opened(browser, rest, "tables").wait_for("document.body.innerText.includes('pages.visits')")

    browser.press("/")
    for key in "visi":
        browser.press(key)
    assert browser.run("document.activeElement.id") == "search"
    assert names(browser) == ["pages.visits"]
    browser.run(
        "document.getElementById('search').value = ''; document.querySelector('th[data-key=name] button').click()"
    )
    assert names(browser) == ["pages.visits", "pages.broken"]
    assert browser.run("document.querySelector('th[data-key=name]').getAttribute('aria-sort')") == "descending"


def test_the_list_is_limited_to_tables_that_need_attention_and_says_its_time_zone(
    browser: Chromium, rest: AirflowRest, broken: DynamicTable
) -> None:
    opened(browser, rest, "tables").wait_for("document.body.innerText.includes('pages.visits')")

    browser.run("document.getElementById('attention').click()")

    assert names(browser) == ["pages.broken"]
    assert "need attention" in browser.run("document.getElementById('summary').innerText")
    assert browser.run("document.getElementById('updated').innerText").endswith(" UTC")


def test_the_page_of_a_table_shows_tasks_that_failed_and_links_a_sink_to_its_task(
    browser: Chromium, rest: AirflowRest, airflow: LocalAirflow, visits: DynamicTable
) -> None:
    rest.wait_for_dag("drop_old_partitions")
    run = rest.trigger("drop_old_partitions", conf={"table": visits.name, "column": "no_such_column"})
    rest.wait("drop_old_partitions", run)
    job = open_job_directory(airflow.home / "dynamic_table_jobs" / visits.name)
    job.note_task(dag_id="stream", run_id="by hand", task_id="stream_sink", map_index=3)

    opened(browser, rest, f"table?name={visits.name}").wait_for(
        "document.getElementById('unfinished').innerText.includes('failed') && document.querySelector('#related a')"
    )

    assert "drop_old_partitions · drop_partitions" in browser.run("document.getElementById('unfinished').innerText")
    href = browser.run("document.querySelector('#unfinished a').getAttribute('href')")
    assert href.endswith("/tasks/drop_partitions")
    link = browser.run("document.querySelector('#related a').getAttribute('href')")
    assert link.endswith("/dags/stream/runs/by%20hand/tasks/stream_sink/mapped/3")


def test_what_comes_from_a_table_is_text_to_a_page(browser: Chromium, rest: AirflowRest, visits: DynamicTable) -> None:
    opened(browser, rest, f"table?name={visits.name}").wait_for("document.querySelector('.heat button')")

    browser.run("document.querySelectorAll('.heat button').forEach((each) => each.click())")
    text = browser.run("document.body.innerText")
    assert text.count(HOSTILE) >= 2, "the comment and the partition are shown as they are"
    assert browser.run("document.querySelectorAll('img, #describe script').length") == 0
    assert browser.run("window.hacked === undefined") is True
    assert browser.run("document.querySelectorAll('#history canvas').length") == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [("pages.nothing", "table pages.nothing does not exist in"), ("<b>x</b>", "invalid table name '<b>x</b>'")],
)
def test_an_unknown_table_is_told_and_not_a_blank_page(
    browser: Chromium, rest: AirflowRest, name: str, told: str
) -> None:
    opened(browser, rest, f"table?{urlencode({'name': name})}").wait_for("document.querySelector('[role=alert]')")

    assert told in browser.run("document.querySelector('[role=alert]').innerText")


def test_a_button_opens_the_dags_form_filled_in_and_starts_it_through_airflows_own_api(
    browser: Chromium, rest: AirflowRest, visits: DynamicTable
) -> None:
    rest.wait_until(lambda: "maintain" in rest.dag_ids(), "the DAG to be parsed", timeout=240)
    opened(browser, rest, f"table?name={visits.name}").wait_for("document.querySelector('#actions button')")

    browser.run("document.querySelector('#actions button').click()")
    browser.wait_for("document.querySelector('dialog textarea')")
    assert browser.run("document.querySelector('dialog textarea').value") == visits.name, "one per line, as it says"
    browser.run("document.querySelector('dialog input[type=checkbox]').click()")  # merge everything
    browser.run("document.querySelector('dialog button[type=submit]').click()")
    browser.wait_for("document.querySelector('dialog .good a')")
    run_id = browser.run("document.querySelector('dialog .good a').innerText")

    assert rest.get(f"/dags/maintain/dagRuns/{run_id}")["conf"]["tables"] == [visits.name]


def test_the_page_of_a_materialized_table_shows_its_query_and_its_sources_and_suspends_it(
    browser: Chromium, rest: AirflowRest, counted: DynamicTable
) -> None:
    rest.wait_for_dag("change_refresh_status")
    opened(browser, rest, f"table?name={counted.name}").wait_for(
        # Two answers of the server, in any order.
        "document.querySelector('#graph table') && document.getElementById('query').innerText"
    )

    assert "count(*) AS n FROM watched.clicks" in browser.run("document.getElementById('query').innerText")
    assert browser.run("document.getElementById('bold')") is None, "the query is text"
    graph = browser.run("document.getElementById('graph').innerText")
    assert "watched.clicks: holds snapshot none of 1" in graph
    assert "activated" in graph

    press = "[...document.querySelectorAll('#actions button')].find((each) => each.innerText === '{0}').click()"
    browser.run(press.format("Suspend"))
    browser.wait_for("document.querySelector('dialog button[type=submit]')")
    browser.run("document.querySelector('dialog button[type=submit]').click()")
    browser.wait_for("document.querySelector('dialog .good a')")
    run_id = browser.run("document.querySelector('dialog .good a').innerText")
    rest.check_success("change_refresh_status", run_id, rest.wait("change_refresh_status", run_id))

    definition = counted.refresh().definition
    assert definition is not None
    assert definition.status is RefreshStatus.SUSPENDED
    opened(browser, rest, f"table?name={counted.name}").wait_for(
        "[...document.querySelectorAll('#actions button')].some((each) => each.innerText === 'Resume')"
    )


def test_a_statement_keeps_its_lines_in_a_form(browser: Chromium, rest: AirflowRest, visits: DynamicTable) -> None:
    """An SQL comment ends with its line, and a single-line field would join pasted lines."""
    rest.wait_until(lambda: "provision" in rest.dag_ids(), "the DAG to be parsed", timeout=240)
    opened(browser, rest, f"table?name={visits.name}").wait_for("document.querySelector('.heat button')")

    browser.run("openForm('provision', { ddl: 'CREATE TABLE t ( -- ids\\n  id BIGINT\\n)' })")
    browser.wait_for("document.querySelector('dialog form')")
    fields = browser.run("[...document.querySelectorAll('dialog textarea')].map((each) => each.value)")
    assert "CREATE TABLE t ( -- ids\n  id BIGINT\n)" in fields


def test_pages_follow_airflows_dark_mode_and_fit_a_phone(
    browser: Chromium, rest: AirflowRest, broken: DynamicTable
) -> None:
    opened(browser, rest, "tables").wait_for("document.body.innerText.includes('pages.visits')")
    browser.run("localStorage.setItem('theme', 'dark'); followTheme()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"
    browser.run("localStorage.setItem('theme', 'light'); followTheme()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"

    for page in ("tables", "table?name=pages.visits"):
        opened(browser, rest, page).resize(390, 800)
        browser.wait_for("document.body.innerText.includes('pages.visits') && document.readyState === 'complete'")
        assert browser.run("document.documentElement.scrollWidth") <= 390, page
