"""The façade stays small, and no module bypasses it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from storage_lib import DynamicTable

CHECKOUT = Path(__file__).parents[1]
VERBS_MAX = 25
ABOVE_THE_TABLE = ["storage_lib/catalog", "storage_lib/cli", "storage_lib/spark", "storage_lib/sql", "plugins", "dags"]


def test_a_table_has_at_most_25_verbs() -> None:
    verbs = [name for name in vars(DynamicTable) if not name.startswith("_") and callable(getattr(DynamicTable, name))]

    assert 15 < len(verbs) <= VERBS_MAX, sorted(verbs)


@pytest.mark.parametrize("folder", ABOVE_THE_TABLE)
def test_what_is_built_on_tables_uses_their_public_interface(folder: str) -> None:
    """``context`` holds the parts of a table; engines use ``new_read`` and ``new_write``."""
    found = [
        f"{path.relative_to(CHECKOUT)}:{node.lineno}"
        for path in sorted((CHECKOUT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("file_store", "lease") and _is_context(node.value)
    ]

    assert not found


def _is_context(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "context"
