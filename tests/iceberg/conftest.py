"""Lakes whose tables are registered in each kind of catalog that somebody else runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.iceberg.registered_lakes import HIVE, REST, Lake, lake_in


@pytest.fixture(params=[REST, HIVE])
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    return lake_in(tmp_path, request.param, request)


@pytest.fixture
def rest_lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    return lake_in(tmp_path, REST, request)


@pytest.fixture
def hive_lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    return lake_in(tmp_path, HIVE, request)
