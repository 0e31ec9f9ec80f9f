"""Takes the screenshots of the documentation, docs/images/*.png, from tables made for this purpose.

    python -m tests.support.page_pictures [--into docs/images]
    python -m tests.support.page_pictures --demo [--into docs/images]    # of the running demo, after `make demo`
    python -m tests.support.page_pictures --capture [--into docs/images] # of tables that follow topics of a broker

Starts an Airflow in a temporary folder, and a headless Chromium.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from dynamic_table.sinks.sink_job import open_job_directory
from local_airflow import LocalAirflow
from local_kafka import LocalKafka
from storage_lib import Catalog, open_catalog, sync_database
from storage_lib.io.environment import SystemClock
from tests.support.chromium import Chromium

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
DAYS = 45
SECONDS_TO_SEND = 300
HOURS_BETWEEN_COMMITS = 17
# Name, number of commits, and hours since the newest one.
TABLES = (("shop.orders", 9, 0.05), ("shop.returns", 3, 5.0), ("shop.visits", 14, 0.7), ("lab.samples", 1, 60.0))
DEMO = Path(__file__).resolve().parents[2] / ".local" / "demo"
FORMS = (
    "maintain", "validate", "reprocess", "drop_old_partitions", "stream", "provision", "provision_tables", "publish",
)  # fmt: skip
POSITIVE = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
SMALL = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "max_value": 0.9}}
VALIDATIONS = {
    "shop.orders": [POSITIVE, {**SMALL, "severity": "warning"}],
    "shop.visits": [POSITIVE],
}
COLUMNS = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("amount", pa.float64())]
)


def main() -> None:
    """Create the tables, start Airflow, take the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=IMAGES)
    parser.add_argument("--demo", action="store_true", help="Take those of the running demo.")
    parser.add_argument("--capture", action="store_true", help="Take those of tables that follow a database.")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    if arguments.demo:
        take_demo(arguments.into)
    elif arguments.capture:
        take_capture(arguments.into)
    else:
        take_pages(arguments.into)


def take_pages(into: Path) -> None:
    """Take the plugin's pages and forms, over tables with a history of some days."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as scratch:
        jobs = Path(scratch) / "jobs"
        extra = {"warehouse": f"{scratch}/warehouse", "options": {"log.system": "none"}, "jobs_directory": str(jobs)}
        make_tables(open_catalog(f"{scratch}/warehouse", {"log.system": "none"}))
        make_sinks(jobs)
        airflow = LocalAirflow(home=Path(scratch) / "airflow", connection_extra=extra)
        rest = airflow.start()
        try:
            # The other DAGs stay paused: maintain would compact the tables.
            rest.wait_for_dag("validate")
            rest.wait_until(lambda: set(FORMS) <= set(rest.dag_ids()), "the DAGs", timeout=60)
            for table, expectations in VALIDATIONS.items():
                rest.wait("validate", rest.trigger("validate", conf={"table": table, "expectations": expectations}))
            with Chromium(Path(scratch) / "profile") as browser:
                browser.log_in(rest.base_url, rest.user, rest.password)
                take(browser, f"{rest.base_url}/dynamic-tables/", into)
                take_forms(browser, f"{rest.base_url}/dynamic-tables/", into)
        finally:
            airflow.stop()


def take_demo(into: Path) -> None:
    """Take Airflow's list of DAGs and the table's page at the end of the demo."""
    rest = LocalAirflow(home=DEMO / "airflow").rest
    with tempfile.TemporaryDirectory(prefix="pictures-") as scratch, Chromium(Path(scratch)) as browser:
        browser.log_in(rest.base_url, rest.user, rest.password)
        browser.resize(1280, 1480)
        browser.open(f"{rest.base_url}/dags")
        browser.wait_for("document.body.innerText.includes('drop_old_partitions')")
        browser.picture(into / "demo-dags.png")
        browser.resize(1280, 1500)
        browser.open(f"{rest.base_url}/dynamic-tables/table?name=demo.flights")
        browser.wait_for("document.querySelector('#history canvas') && document.querySelector('.heat button')")
        browser.picture(into / "demo-table.png")


def take_capture(into: Path) -> None:
    """Take the list of tables that a sync follows, and the page of one: behind its topic, with a rejected record."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as scratch, LocalKafka(Path(scratch) / "kafka") as kafka:
        options = {"log.system": "none", "log.kafka.bootstrap.servers": kafka.bootstrap_servers}
        sync_shop(open_catalog(f"{scratch}/warehouse", options), kafka.bootstrap_servers)
        extra = {"warehouse": f"{scratch}/warehouse", "options": options}
        airflow = LocalAirflow(home=Path(scratch) / "airflow", connection_extra=extra)
        rest = airflow.start()
        try:
            with Chromium(Path(scratch) / "profile") as browser:
                browser.log_in(rest.base_url, rest.user, rest.password)
                browser.resize(1280, 330)
                browser.open(f"{rest.base_url}/dynamic-tables/tables")
                browser.wait_for("document.body.innerText.includes('12 behind, 1 rejected')")
                browser.picture(into / "cdc-tables.png")
                browser.resize(1280, 640)
                browser.open(f"{rest.base_url}/dynamic-tables/table?name=shop.orders")
                browser.wait_for("document.body.innerText.includes('12 behind')")
                browser.run("document.querySelector('#topics').scrollIntoView()")
                browser.picture(into / "cdc-table.png")
        finally:
            airflow.stop()


def sync_shop(catalog: Catalog, servers: str) -> None:
    """Let tables follow topics as Debezium writes them: with a new column, a record that does not fit, and a lag."""
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [NewTopic(f"db.shop.{table}", 1, 1) for table in ("items", "customers", "orders")]
    for created in admin.create_topics(wanted).values():
        created.result(SECONDS_TO_SEND)
    id_, text, price = ("id", "int64", False), ("item", "string", True), ("price", "int32", True)
    send(servers, "items", [id_, text], [{"id": number, "item": f"item {number}"} for number in range(40)])
    send(servers, "customers", [id_, text], [{"id": number, "item": "a name"} for number in range(25)])
    send(servers, "orders", [id_, text], [{"id": number, "item": "tea"} for number in range(120)])
    send(
        servers, "orders", [id_, text, price], [{"id": 120 + number, "item": "cup", "price": 9} for number in range(30)]
    )
    send(servers, "orders", [id_, text, price], [{"id": 150, "item": "pot", "price": -1}])

    def not_negative(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
        prices = rows["price"].to_pylist() if "price" in rows.column_names else []
        return {place: ("price", "negative") for place, price in enumerate(prices) if price is not None and price < 0}

    quarantine = {**catalog.options, "source.on-reject": "quarantine"}
    result = sync_database(catalog, "db.shop.*", into="shop", options=quarantine, expect={"shop.orders": not_negative})
    if result.errors:
        raise result.errors[0]
    send(
        servers, "orders", [id_, text, price], [{"id": 151 + number, "item": "cup", "price": 9} for number in range(12)]
    )


def send(
    servers: str, table: str, columns: Sequence[tuple[str, str, bool]], rows: Sequence[Mapping[str, object]]
) -> None:
    """Write insertions with their schema into the topic of a table."""
    fields = [{"field": name, "type": type_, "optional": is_optional} for name, type_, is_optional in columns]
    sides = [{"field": side, "type": "struct", "fields": fields, "optional": True} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}]}
    producer, failed = Producer({"bootstrap.servers": servers}), list[object]()
    for row in rows:
        value = {"schema": schema, "payload": {"before": None, "after": row, "op": "c"}}
        producer.produce(
            f"db.shop.{table}",
            json.dumps(value),
            json.dumps({"id": row["id"]}),
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    if producer.flush(SECONDS_TO_SEND) or failed:
        message = f"the records of {table} were not written: {failed[:1]}"
        raise RuntimeError(message)


def make_tables(catalog: Catalog) -> None:
    """Create a few tables with some days of history. None is broken: an error would show a path of this machine."""
    random = np.random.default_rng(13)
    for name, commits, hours in TABLES:
        options = {"bucket": "2", "write-only": "true"}
        table = catalog.create_table(name, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=options)
        for number in range(commits):
            moment = time.time() - 3600 * (HOURS_BETWEEN_COMMITS * (commits - 1 - number) + hours)
            rows = int(random.integers(500, 3000))
            days = np.clip(random.normal(10 + 3 * number, 6, rows).astype(int), 0, DAYS - 1)
            stamps = np.datetime_as_string(np.datetime64("2026-10-01") + days)
            written = pa.table({"day": stamps, "id": random.integers(0, 5000, rows), "amount": random.random(rows)})
            with clock_at(moment):
                table.append(written)
            if name == "shop.orders" and number == 4:
                with clock_at(moment + 3600 * HOURS_BETWEEN_COMMITS / 2):
                    table.compact()


def clock_at(moment: float) -> AbstractContextManager[object]:
    """Stop the wall clock of this process at ``moment``, in epoch seconds."""
    return patch.object(SystemClock, "now_millis", lambda _: int(1000 * moment))


def make_sinks(jobs: Path) -> None:
    """Write the status files of two sinks: one running, one failed."""
    said = {
        "shop.orders": {"state": "RUNNING", "batch_id": 1204, "row_count": 48310},
        "shop.returns": {"state": "FAILED", "error": "UnavailableError: Kafka at 10.0.0.7:9092 does not answer"},
    }
    for table, heartbeat in said.items():
        open_job_directory(jobs / table).heartbeat_path.write_text(json.dumps(heartbeat))


def take(browser: Chromium, address: str, into: Path) -> None:
    """Take both pages in the light theme, the dark theme and at phone width, and the Great Expectations results."""
    browser.resize(1280, 330)
    browser.open(f"{address}tables")
    browser.wait_for("document.body.innerText.includes('shop.orders')")
    browser.picture(into / "tables.png")
    browser.run("localStorage.setItem('theme', 'dark'); followTheme()")
    browser.picture(into / "tables-dark.png")
    browser.run("localStorage.removeItem('theme'); followTheme()")
    browser.resize(390, 800)
    browser.picture(into / "tables-phone.png")
    browser.open(f"{address}table?name=shop.orders")
    browser.wait_for("document.querySelector('#history canvas') && document.querySelector('.heat button')")
    browser.resize(390, 2300)
    browser.picture(into / "table-phone.png")
    browser.resize(1280, 1700)
    browser.open(f"{address}table?name=shop.orders")
    browser.wait_for("document.querySelector('#history canvas') && document.querySelector('.heat button')")
    browser.picture(into / "table.png")
    browser.run("localStorage.setItem('theme', 'dark'); followTheme()")
    browser.open(f"{address}table?name=shop.orders")
    browser.wait_for("document.querySelector('#history canvas') && document.querySelector('.heat button')")
    browser.picture(into / "table-dark.png")
    browser.run("localStorage.removeItem('theme'); followTheme()")
    docs = browser.run("document.querySelector('#related a').href")
    browser.open(docs)
    browser.resize(1280, 1000)
    browser.picture(into / "data-docs.png")


def take_forms(browser: Chromium, address: str, into: Path) -> None:
    """Take the form of every DAG that has one, as opened by the pages' buttons; one in the dark theme, one narrow."""
    for dag_id in FORMS:
        show_form(browser, address, dag_id, height=900)
        browser.picture(into / f"form-{dag_id.replace('_', '-')}.png")
    browser.run("localStorage.setItem('theme', 'dark'); followTheme()")
    browser.picture(into / "form-dark.png")
    browser.run("localStorage.removeItem('theme'); followTheme()")
    show_form(browser, address, "reprocess", width=390, height=800)
    browser.picture(into / "form-phone.png")


def show_form(browser: Chromium, address: str, dag_id: str, *, width: int = 1280, height: int) -> None:
    """Open a table's page and its form for a DAG."""
    browser.resize(width, height)
    browser.open(f"{address}table?name=shop.orders")
    browser.wait_for("document.querySelector('.heat button')")
    filled = '{ tables: ["shop.orders"] }' if dag_id == "maintain" else "{}"
    browser.run(f"act({json.dumps(dag_id)}, {filled})")
    browser.wait_for("document.querySelector('dialog[open] button[type=submit]')")


if __name__ == "__main__":
    main()
