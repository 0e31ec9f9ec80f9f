"""The session's catalogs and registries: PostgreSQL, Hive's metastore, Iceberg's REST catalog, a schema registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_iceberg_rest import JARS as ICEBERG_REST_JARS
from local_iceberg_rest import LocalIcebergRest
from local_metastore import LocalMetastore, find_jars
from local_postgres import LocalPostgres, find_programs
from local_registry import APP, LocalRegistry


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """One real schema registry for the whole session; name your topics after your test."""
    if not APP.exists():
        pytest.skip("there is no schema registry here: run `make servers`")
    with LocalRegistry(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPostgres]:
    """One real PostgreSQL for the whole session; use a separate ``catalog-key`` for your catalog."""
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL here: run `make servers`, which says how to get it")
    with LocalPostgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMetastore]:
    """One real Hive metastore for the whole session; name your databases after your test."""
    if find_jars() is None:
        pytest.skip("there is no Hive metastore here: run `make setup`")
    with LocalMetastore(tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture(scope="session")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalIcebergRest]:
    """One real Iceberg REST catalog for the whole session; name your databases after your test."""
    if not ICEBERG_REST_JARS.exists():
        pytest.skip("there is no Iceberg REST catalog here: run `make servers`")
    with LocalIcebergRest(tmp_path_factory.mktemp("iceberg_rest")) as server:
        yield server
