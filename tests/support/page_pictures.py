"""Takes the pictures of the pages that the manual shows: docs/images/*.png, from tables made for it.

    python -m tests.support.page_pictures [--into docs/images]

Starts an Airflow of its own in a folder that is thrown away, and a Chromium without a window.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

import numpy as np
import pyarrow as pa

from local_airflow import LocalAirflow
from storage_lib import Catalog, open_catalog
from tests.support.chromium import Chromium

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
DAYS = 45
COLUMNS = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("amount", pa.float64())]
)


def main() -> None:
    """Make the tables, start Airflow, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=IMAGES)
    into = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-") as scratch:
        extra = {"warehouse": f"{scratch}/warehouse", "options": {"log.system": "none"}}
        make_tables(open_catalog(f"{scratch}/warehouse", {"log.system": "none"}))
        airflow = LocalAirflow(home=Path(scratch) / "airflow", connection_extra=extra)
        rest = airflow.start()
        try:
            rest.wait_for_dag("maintain")
            with Chromium(Path(scratch) / "profile") as browser:
                take(browser, f"{rest.base_url}/dynamic-tables/", into)
        finally:
            airflow.stop()


def make_tables(catalog: Catalog) -> None:
    """A few tables as they are after some days. None is broken: an error would show a path of this machine."""
    random = np.random.default_rng(13)
    for name, commits in (("shop.orders", 9), ("shop.returns", 3), ("shop.visits", 14), ("lab.samples", 1)):
        options = {"bucket": "2", "write-only": "true"}
        table = catalog.create_table(name, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=options)
        for number in range(commits):
            rows = int(random.integers(500, 3000))
            days = np.clip(random.normal(10 + 3 * number, 6, rows).astype(int), 0, DAYS - 1)
            stamps = np.datetime_as_string(np.datetime64("2026-10-01") + days)
            table.append(pa.table({"day": stamps, "id": random.integers(0, 5000, rows), "amount": random.random(rows)}))
            if name == "shop.orders" and number == 4:
                table.compact()


def take(browser: Chromium, address: str, into: Path) -> None:
    """Every page, the dark one, the one of a phone, and a form."""
    browser.resize(1280, 420)
    browser.open(f"{address}tables")
    browser.wait_for("document.body.innerText.includes('shop.orders')")
    browser.picture(into / "tables.png")
    browser.run("localStorage.setItem('theme', 'dark'); followTheme()")
    browser.picture(into / "tables-dark.png")
    browser.run("localStorage.removeItem('theme'); followTheme()")
    browser.resize(390, 800)
    browser.picture(into / "tables-phone.png")
    browser.resize(1280, 1500)
    browser.open(f"{address}table?name=shop.orders")
    browser.wait_for("document.querySelector('#history canvas') && document.querySelector('.heat button')")
    browser.picture(into / "table.png")
    browser.resize(1280, 900)
    browser.run("document.querySelector('#actions button').click()")
    browser.wait_for("document.querySelector('dialog textarea')")
    browser.picture(into / "form.png")


if __name__ == "__main__":
    main()
