"""VerifyOperator fails with the keys that differ, and reaches only the server that the DAG's author names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Connection

from dynamic_table.connection.postgres_address import postgres_address
from dynamic_table.operators.verify_table import RowsDifferError, VerifyOperator
from storage_lib import DynamicTable, open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from tests.support.task_context import task_context


def made(warehouse: Path, name: str, ids: list[int]) -> DynamicTable:
    catalog = open_catalog(str(warehouse), {"log.system": "none"})
    table = catalog.create_table(name, {"id": "BIGINT", "note": "STRING"}, primary_key=["id"])
    table.append(pa.table({"id": ids, "note": ["secret note"] * len(ids)}))
    return table


def run(**arguments: Any) -> dict[str, Any]:
    task = VerifyOperator(task_id="verify", table="shop.orders", **arguments)
    return task.execute(task_context(task))


def test_equal_tables_return_their_positions(warehouse: Path) -> None:
    made(warehouse, "shop.orders", [1, 2])
    made(warehouse, "archive.orders", [1, 2])

    assert run(source_table="archive.orders") == {
        "table": "shop.orders",
        "table_position": "snapshot 1",
        "source_position": "snapshot 1",
        "rows": 2,
    }


def test_the_error_names_keys_but_no_values(warehouse: Path) -> None:
    made(warehouse, "shop.orders", [1, 2])
    made(warehouse, "archive.orders", [1, 3])

    with pytest.raises(RowsDifferError) as raised:
        run(source_table="archive.orders")

    assert "1 missing, 1 extra, 0 different" in str(raised.value)
    assert "missing: {'id': 3}" in str(raised.value)
    assert "secret note" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({}, InvalidInputError, "either source_conn_id or source_table"),
        ({"source_conn_id": "db", "source_table": "archive.orders"}, InvalidInputError, "either source_conn_id or"),
        ({"source_table": "archive.nothing"}, NotFoundError, "archive.nothing"),
        ({"source_conn_id": "dynamic_table_default"}, InvalidInputError, "needs one of type 'postgres'"),
    ],
)
def test_a_source_that_is_not_one_is_refused(
    arguments: dict[str, Any], error: type[Exception], said: str, warehouse: Path
) -> None:
    made(warehouse, "shop.orders", [1])

    with pytest.raises(error, match=said):
        run(**arguments)


def test_a_form_names_neither_a_server_nor_a_query() -> None:
    assert "source_conn_id" not in VerifyOperator.template_fields
    assert not hasattr(VerifyOperator(task_id="verify", table="shop.orders"), "query")


def test_an_address_has_the_fields_of_the_connection() -> None:
    connection = Connection(
        conn_id="db", conn_type="postgres", host="db.example", port=5433, login="me@x", password="p/w:1",  # noqa: S106
        schema="shop", extra=json.dumps({"sslmode": "require"}),
    )  # fmt: skip

    assert postgres_address(connection) == "postgresql://me%40x:p%2Fw%3A1@db.example:5433/shop?sslmode=require"


def test_settings_of_a_connection_that_could_reach_elsewhere_are_refused() -> None:
    connection = Connection(conn_id="db", conn_type="postgres", extra=json.dumps({"hostaddr": "10.0.0.1"}))

    with pytest.raises(InvalidInputError, match="has hostaddr in its extra"):
        postgres_address(connection)
