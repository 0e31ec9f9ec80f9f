"""Flink with Paimon's connector over the server, which it knows by its address only."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib import open_catalog
from tests.support.deep_tests import thinned
from tests.support.extras import needs
from tests.support.flink import Flink
from tests.support.line_servant import RefusedError
from tests.support.served_catalogs import TOKENS, client_file, serving

pytestmark = [
    needs("fastapi", "uvicorn", "httpx"),
    pytest.mark.deep,  # a cluster of its own; pypaimon sends the same requests in `make test`
    pytest.mark.flink,
    pytest.mark.integration,
]


@pytest.fixture(params=thinned(["flink_2_0", "flink_1_20"]))
def flink(request: pytest.FixtureRequest) -> Flink:
    return request.getfixturevalue(request.param)


def test_flink_creates_writes_and_reads_by_address_alone(flink: Flink, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "lake", {"log.system": "none"})
    catalog.create_database("staging")
    catalog.create_table("private.salaries", {"id": "BIGINT"}, primary_key=["id"])
    with serving(tmp_path / "lake", "--clients", str(client_file(tmp_path)), log=tmp_path / "served.log") as address:
        # Flink looks for the default database, which is closed to this client if it is not named.
        served = (
            "CREATE CATALOG served WITH ('type' = 'paimon', 'metastore' = 'rest', 'warehouse' = 'main', "
            f"'default-database' = 'staging', 'uri' = '{address}/paimon', 'token.provider' = 'bear', "
            f"'token' = '{TOKENS['loader']}')"
        )
        rows = flink.execute(
            tmp_path / "flink",
            served,
            "CREATE TABLE served.staging.sold (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED) "
            "WITH ('bucket' = '1')",
            "INSERT INTO served.staging.sold VALUES (1, 'tea'), (2, 'cup')",
            "INSERT INTO served.staging.sold VALUES (2, 'mug')",
            "ALTER TABLE served.staging.sold ADD n INT",
            "SELECT * FROM served.staging.sold",
        )
        with pytest.raises(RefusedError):
            flink.execute(tmp_path / "flink", served, "SELECT * FROM served.private.salaries")

    assert len(rows) == 2
    assert any("mug" in row for row in rows)
    table = catalog.load_table("staging.sold")
    assert sorted(table.to_arrow().to_pylist(), key=str) == [
        {"id": 1, "item": "tea", "n": None},
        {"id": 2, "item": "mug", "n": None},
    ]
