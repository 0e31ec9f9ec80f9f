"""The reference lists every operator that a DAG may use."""

from __future__ import annotations

import ast
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
OPERATORS = CHECKOUT / "plugins" / "dynamic_table" / "operators"
PAGE = CHECKOUT / "docs" / "reference" / "operators.md"
BASES = {
    "CatalogOperator",
    "DetachedJobOperator",
    "EngineOperator",
    "PartitionDropOperator",
    "SparkOperator",
    "TableOperator",
}


def test_the_reference_lists_every_operator_but_those_that_others_extend() -> None:
    defined = {
        f"dynamic_table.operators.{path.stem}.{node.name}"
        for path in OPERATORS.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Operator") and node.name not in BASES
    }
    listed = [line.removeprefix("::: ") for line in PAGE.read_text(encoding="utf-8").splitlines() if ":::" in line]

    assert defined - set(listed) == set()
    assert len(listed) == len(set(listed))
