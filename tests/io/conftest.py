"""Storages to run the same tests over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.storages import ALL, Storage, open_storage


@pytest.fixture(params=ALL)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty place in each storage."""
    return open_storage(request.param, request, tmp_path)
