"""pypaimon and Paimon's Java core over the server, which they know by its address only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest

from storage_lib import Catalog, open_catalog
from storage_lib.schema.table_schema import new_table_schema
from tests.support.extras import needs
from tests.support.line_servant import RefusedError
from tests.support.other_readers import (
    alter_with_pypaimon,
    append_with_pypaimon,
    call_catalog_of_pypaimon,
    create_with_pypaimon,
    needs_pypaimon,
    read_with_pypaimon,
)
from tests.support.paimon_core import PaimonCore
from tests.support.served_catalogs import TOKENS, client_file, serving

pytestmark = [needs("fastapi", "uvicorn", "httpx"), pytest.mark.integration]


class Served(NamedTuple):
    options: dict[str, str]
    """Address, token and warehouse for a client of Paimon."""
    catalog: Catalog
    """The catalog behind the server."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("served")
    catalog = open_catalog(home / "lake", {"log.system": "none"})
    catalog.create_database("staging")
    catalog.create_table("private.salaries", {"id": "BIGINT"}, primary_key=["id"])
    with serving(home / "lake", "--clients", str(client_file(home)), log=home / "served.log") as address:
        options = {"metastore": "rest", "uri": f"{address}/paimon", "warehouse": "main"}
        yield Served({**options, "token.provider": "bear", "token": TOKENS["loader"]}, catalog)


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@needs_pypaimon
def test_commits_of_pypaimon_and_of_this_library_follow_each_other(served: Served, tmp_path: Path) -> None:
    """Random turns of both: each reads all rows that were written, and the Iceberg view shows them."""
    name = "staging.sold"
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "item": ["tea", "cup"]})
    view = {"metadata.iceberg.storage": "table-location"}
    create_with_pypaimon(served.options, name, tmp_path, rows, primary_keys=["id"], options={"bucket": "2", **view})
    expected = {1: "tea", 2: "cup"}
    rng = Random(5)  # noqa: S311  drawn, not secret
    for turn in range(6):
        keys = rng.sample(range(20), 3)
        written = pa.table({"id": pa.array(keys, pa.int64()), "item": [f"{turn}-{key}" for key in keys]})
        if rng.random() < 0.5:
            append_with_pypaimon(served.options, name, tmp_path, written)
        else:
            served.catalog.load_table(name).append(written)
        expected |= dict(zip(keys, written["item"].to_pylist(), strict=True))
        assert rows_of(read_with_pypaimon(served.options, name, tmp_path)) == sorted(expected.items())

    table = served.catalog.load_table(name)
    assert rows_of(table.to_arrow()) == sorted(expected.items())
    assert table.inspect.health().view_lag == 0


@needs_pypaimon
def test_pypaimon_alters_renames_and_drops(served: Served, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1], pa.int32()), "item": ["tea"]})
    create_with_pypaimon(served.options, "staging.first", tmp_path, rows, primary_keys=["id"], options={"bucket": "1"})
    alter_with_pypaimon(
        served.options,
        "staging.first",
        [["add_column", "n", "INT"], ["update_column_type", "n", "BIGINT"], ["rename_column", "item", "name"]],
    )
    with pytest.raises(RefusedError, match="part of the primary key"):
        alter_with_pypaimon(served.options, "staging.first", [["update_column_type", "id", "BIGINT"]])
    assert served.catalog.load_table("staging.first").to_arrow().to_pylist() == [{"id": 1, "name": "tea", "n": None}]

    call_catalog_of_pypaimon(served.options, "staging.first", "rename_table", "staging.second")
    assert rows_of(read_with_pypaimon(served.options, "staging.second", tmp_path)) == [(1, "tea", None)]
    call_catalog_of_pypaimon(served.options, "staging.second", "drop_table", False)
    assert "staging.second" not in served.catalog.list_tables()
    with pytest.raises(RefusedError, match="TableNotExist"):
        read_with_pypaimon(served.options, "staging.second", tmp_path)


@needs_pypaimon
def test_pypaimon_is_kept_out_of_what_its_token_does_not_open(served: Served, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="NoPermission"):
        read_with_pypaimon(served.options, "private.salaries", tmp_path)
    with pytest.raises(RefusedError, match="Not authorized"):
        read_with_pypaimon({**served.options, "token": TOKENS["past"]}, "staging.sold", tmp_path)


@pytest.mark.deep  # a JVM of its own; pypaimon sends the same requests in `make test`
@pytest.mark.paimon_core
def test_paimons_java_core_creates_writes_alters_and_reads(served: Served) -> None:
    """The server knows nothing of what 1.4 lacks: its requests have fewer keys than those of pypaimon."""
    name = "staging.java"
    columns = {"id": "BIGINT NOT NULL", "item": "STRING"}
    schema = new_table_schema(list(columns.items()), primary_keys=["id"], options={"bucket": "1"}, time_millis=0)
    with PaimonCore() as java:
        java.create(served.options, name, schema)
        java.write(served.options, name, [(1, "tea"), (2, "cup")], schema)
        served.catalog.load_table(name).append([{"id": 3, "item": "pot"}])
        java.write(served.options, name, [(2, "mug")], schema)
        java.compact(served.options, name)
        assert sorted(java.read(served.options, name, schema)) == [(1, "tea"), (2, "mug"), (3, "pot")]

        java.alter(served.options, name, [{"action": "addColumn", "fieldNames": ["n"], "dataType": "INT"}])
        wider = served.catalog.load_table(name).schema
        java.write(served.options, name, [(4, "can", 7)], wider)
        assert max(java.read(served.options, name, wider)) == (4, "can", 7)
        with pytest.raises(RefusedError, match="permission"):
            java.read(served.options, "private.salaries", schema)

    assert served.catalog.load_table(name).to_arrow().num_rows == 4
