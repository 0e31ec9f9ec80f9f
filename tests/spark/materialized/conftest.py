"""Catalogs for the tests of materialized tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import open_catalog

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Return a catalog of its own for the test."""
    return open_catalog(str(tmp_path / "warehouse"))
