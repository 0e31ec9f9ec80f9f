"""The command, and the lines of docs/serve.md, with clients of other projects that know only the server's address."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from local_process import LOOPBACK, free_port
from storage_lib import Catalog, open_catalog
from storage_lib.cli.app import app
from tests.support.extras import needs
from tests.support.fenced_blocks import sections
from tests.support.iceberg_readers import answered_by_duckdb, needs_readers, printed_by_pyiceberg
from tests.support.line_servant import RefusedError
from tests.support.other_readers import PYPAIMON, needs_pypaimon
from tests.support.served_catalogs import client_file, serving

pytestmark = needs("fastapi", "uvicorn", "httpx")

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
ROLE = "arn:aws:iam::123456789012:role/tables"
SHOWN_ADDRESS = "http://127.0.0.1:8181"


class Served(NamedTuple):
    address: str
    catalog: Catalog


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run the server that the page describes, with its file of clients."""
    home = tmp_path_factory.mktemp("served")
    catalog = open_catalog(home / "lake")
    columns, options = {"id": "BIGINT", "item": "STRING"}, {"metadata.iceberg.storage": "table-location"}
    orders = catalog.create_table("shop.orders", columns, primary_key=["id"], options=options)
    orders.append([{"id": 1, "item": "tea"}, {"id": 2, "item": "cup"}])
    orders.upsert([{"id": 2, "item": "mug"}])
    catalog.create_database("staging")
    catalog.create_table("private.salaries", columns, primary_key=["id"], options=options)
    clients = client_file(home, blocks("toml", "Clients and permissions"))
    with serving(home / "lake", "--clients", str(clients), log=home / "served.log") as address:
        yield Served(address, catalog)


def blocks(language: str, title: str) -> str:
    """Return the blocks of a section of the page in a language."""
    (section,) = (each for each in sections(PAGE) if each.title == title)
    found = [block.text for block in section.blocks if block.language == language]
    assert found
    return "\n".join(found)


def at(served: Served, text: str) -> str:
    assert SHOWN_ADDRESS in text
    return text.replace(SHOWN_ADDRESS, served.address)


@needs_readers
@pytest.mark.integration
def test_clients_of_iceberg_read_by_address_alone(served: Served) -> None:
    printed = printed_by_pyiceberg(at(served, blocks("python", "Iceberg")))
    attached, newest, first = answered_by_duckdb(at(served, blocks("sql", "Iceberg")))

    assert "('shop', 'orders')" in printed
    assert "[{'id': 1, 'item': 'tea'}, {'id': 2, 'item': 'mug'}]" in printed
    assert attached == "[]"
    assert sorted(re.findall(r"\(\d, '\w+'\)", newest)) == ["(1, 'tea')", "(2, 'mug')"]
    assert sorted(re.findall(r"\(\d, '\w+'\)", first)) == ["(1, 'tea')", "(2, 'cup')"]


@needs_readers
@pytest.mark.integration
def test_clients_of_iceberg_are_refused_with_the_reason(served: Served) -> None:
    attach = at(served, blocks("sql", "Iceberg")).partition(";")[0]
    table = served.catalog.load_table("shop.orders")
    before = table.to_arrow()

    for write in (
        "INSERT INTO lake.shop.orders VALUES (9, 'x')",
        "DROP TABLE lake.shop.orders",
        "CREATE SCHEMA lake.x",
    ):
        with pytest.raises(RefusedError, match="this catalog is read-only"):
            answered_by_duckdb(f"{attach}; {write}")
    with pytest.raises(RefusedError, match=r"Unauthorized|NotAuthorized"):
        printed_by_pyiceberg(at(served, blocks("python", "Iceberg")).replace("a-long-random", "a-wrong-random"))
    with pytest.raises(RefusedError, match="may not read this database"):
        printed_by_pyiceberg(at(served, blocks("python", "Iceberg")).replace("shop", "private"))

    assert served.catalog.load_table("shop.orders").to_arrow().equals(before)


@needs_pypaimon
@pytest.mark.integration
def test_pypaimon_creates_writes_and_reads_by_address_alone(served: Served) -> None:
    program = at(served, blocks("python", "Paimon"))

    ran = subprocess.run([PYPAIMON, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert "[{'id': 1, 'item': 'tea'}, {'id': 2, 'item': 'cup'}]" in ran.stdout
    assert served.catalog.load_table("staging.items").to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines"),  # noqa: S104  it is refused
        (["--host", "::"], "can be reached from other machines"),
        (["--host", "lake.example"], "can be reached from other machines"),
        (["--certificate", "server.pem"], "TLS needs both"),
        (["--name", "a/b"], "invalid name 'a/b' of the warehouse"),
        (["--clients", "nothing.toml"], "No such file"),
        (["--token-service", "https://minio.example"], "needs a role"),
        (["--role", ROLE], "no credentials can be made for"),
        (["--role", "tables"], "'tables' is not the name of a role"),
    ],
)
def test_a_server_that_would_be_open_to_all_does_not_start(tmp_path: Path, arguments: list[str], reason: str) -> None:
    ran = CliRunner().invoke(app, ["-w", str(tmp_path), "serve", *arguments])

    assert ran.exit_code == 1
    assert reason in ran.output


@needs("botocore", "obstore")
def test_no_role_is_taken_without_a_file_of_clients() -> None:
    ran = CliRunner().invoke(app, ["-w", "s3://lake/warehouse", "serve", "--role", ROLE])

    assert ran.exit_code == 1
    assert "a role needs clients" in ran.output


@needs("botocore", "obstore")
def test_a_role_that_can_t_be_assumed_is_told_at_the_start(tmp_path: Path) -> None:
    options = tmp_path / "options.json"
    options.touch(0o600)
    options.write_text(json.dumps({"s3.access-key": "key", "s3.secret-key": "secret"}))
    service = ["--role", ROLE, "--token-service", f"http://{LOOPBACK}:{free_port()}"]
    clients = ["--clients", str(client_file(tmp_path))]

    ran = CliRunner().invoke(app, ["-w", "s3://lake/warehouse", "-O", str(options), "serve", *clients, *service])

    assert ran.exit_code == 75
    assert f"gave no credentials of the role {ROLE}" in ran.output


@pytest.mark.integration
def test_a_server_with_a_certificate_speaks_tls(tmp_path: Path) -> None:
    import ssl

    import httpx

    from tests.support.certificates import Authority

    authority = Authority(tmp_path / "keys")
    pem = str(authority.issue("server"))
    (tmp_path / "lake").mkdir()
    with serving(tmp_path / "lake", "--certificate", pem, "--key", pem, log=tmp_path / "served.log") as address:
        trusted = ssl.create_default_context(cafile=str(authority.trusted))
        assert address.startswith("https://")
        assert httpx.get(f"{address}/health", verify=trusted).json() == {"status": "up"}
