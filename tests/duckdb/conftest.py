"""Tables for the tests of statements that this process computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage_lib import open_catalog

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., DynamicTable]:
    """Return a function that creates table ``db.<name>`` without a log; underscores stand for dashes in options."""

    def make(
        name: str,
        *,
        columns: dict[str, str],
        primary_key: tuple[str, ...],
        partition_by: tuple[str, ...] = (),
        **given: Any,
    ) -> DynamicTable:
        options = {key.replace("_", "-").replace("--", "."): str(value) for key, value in given.items()}
        return open_catalog(str(tmp_path / "warehouse")).create_table(
            f"db.{name}", columns, primary_key=primary_key, partition_by=partition_by, options=options
        )

    return make
