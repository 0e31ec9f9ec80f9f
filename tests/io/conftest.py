"""Storages for the shared suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.storages import ALL, Storage, open_storage


@pytest.fixture(params=ALL)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Return an empty location in each storage."""
    return open_storage(request.param, request, tmp_path)
