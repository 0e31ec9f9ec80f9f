"""Catalogs for the tests of materialized tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import open_catalog
from storage_lib.duckdb import duckdb_engine
from storage_lib.materialized.engine import EngineRefusalError
from storage_lib.materialized.plan.refresh_result import RefreshEngine

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Return a catalog of its own for the test."""
    return open_catalog(str(tmp_path / "warehouse"))


@pytest.fixture(params=list(RefreshEngine), ids=str)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RefreshEngine:
    """Let either engine compute the changes of the test."""
    wanted: RefreshEngine = request.param
    if wanted is RefreshEngine.SPARK:
        only_spark(monkeypatch)
    return wanted


@pytest.fixture
def by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark compute the changes of the test."""
    only_spark(monkeypatch)


def only_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let DuckDB compute nothing."""

    def refuse(*_: object, **__: object) -> None:
        raise EngineRefusalError("the test asks for Spark")

    monkeypatch.setattr(duckdb_engine, "refresh_in_duckdb", refuse)
