"""A served warehouse in S3: clients get places of files by the server, and read them with credentials of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local_s3 import LocalS3
from storage_lib import open_catalog
from tests.support.extras import needs
from tests.support.iceberg_readers import needs_readers, printed_by_pyiceberg
from tests.support.served_catalogs import ServedInProcess, serving

pytestmark = [needs("fastapi", "uvicorn", "httpx"), needs_readers, pytest.mark.s3, pytest.mark.integration]


def test_pyiceberg_reads_from_s3_by_the_address_of_the_server(s3: LocalS3, tmp_path: Path) -> None:
    warehouse = "s3://lake/served"
    catalog = open_catalog(warehouse, s3.options)
    orders = catalog.create_table(
        "shop.orders",
        {"id": "BIGINT", "item": "STRING"},
        primary_key=["id"],
        options={"metadata.iceberg.storage": "table-location"},
    )
    orders.append([{"id": 1, "item": "tea"}, {"id": 2, "item": "cup"}])
    orders.delete([{"id": 1}])
    options = tmp_path / "options.json"
    options.touch(0o600)
    options.write_text(json.dumps(s3.options))

    told = ServedInProcess(catalog).ask("GET", "/iceberg/v1/namespaces/shop/tables/orders", None).json()
    with serving(warehouse, log=tmp_path / "served.log", options_file=options) as address:
        own = {"s3.access-key-id": s3.options["s3.access-key"], "s3.secret-access-key": s3.options["s3.secret-key"]}
        printed = printed_by_pyiceberg(
            "from pyiceberg.catalog import load_catalog\n"
            f"lake = load_catalog('lake', type='rest', uri='{address}/iceberg', **{own!r})\n"
            "print(lake.load_table('shop.orders').scan().to_arrow().to_pylist())\n"
        )

    assert printed.strip() == "[{'id': 2, 'item': 'cup'}]"
    assert told["metadata-location"].startswith("s3://lake/served/shop.db/orders/")
    assert told["config"]["s3.endpoint"] == s3.options["s3.endpoint"]
    assert s3.options["s3.secret-key"] not in json.dumps(told)
