"""What docs/engines.md calls tested has a test, which this module names; the rest says that nobody has tried it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| (?P<engine>[^|]+) \| (?P<way>[^|]+) \| (?:yes|no) \| (?:yes|no) \| (?P<state>[^|]+) \|$", re.MULTILINE
)
TESTED_BY = {
    "Python: Arrow, pandas, Polars": ("test_life_of_a_row.py",),
    "Spark 4.1, 4.2, 4.3": ("spark", "sql"),
    "Flink 1.20, 2.0": ("interop/test_flink.py", "interop/test_flink_streams.py", "serve/test_served_flink.py"),
    "pypaimon 2.1": ("interop/test_interop.py", "serve/test_paimon_clients.py", "serve/test_serve_page.py"),
    "Paimon's Java core 1.4": ("interop/test_interop.py", "serve/test_paimon_clients.py"),
    "DuckDB 1.5.5": ("iceberg/test_view_lives.py", "serve/test_serve_page.py"),
    "DuckDB 2.0": ("duckdb",),
    "Polars 2.1": ("iceberg/test_view_lives.py",),
    "delta-rs 1.6": ("iceberg/test_delta_log.py",),
    "PyIceberg 0.12": ("iceberg/test_view_lives.py", "serve/test_serve_page.py", "serve/test_served_s3.py"),
}
"""Engines whose lines tests run, and the modules or folders of the tests."""


def test_an_engine_is_called_tested_if_it_has_a_test() -> None:
    states = {row["engine"]: row["state"] for row in ROW.finditer(PAGE)}

    assert {engine for engine, state in states.items() if state == "tested"} == set(TESTED_BY)
    assert set(states.values()) == {"tested", "tried once", "not tried"}


def test_each_engine_has_its_lines() -> None:
    titles = " ".join(re.findall(r"^## (.+)$", PAGE, re.MULTILINE))
    engines = {re.split(r"[ :,]", row["engine"])[0] for row in ROW.finditer(PAGE)} - {
        "pypaimon",
        "Paimon's",
        "PyIceberg",
        "delta-rs",
    }

    assert {engine for engine in engines if engine not in titles} == set()


def test_the_named_tests_exist() -> None:
    for places in TESTED_BY.values():
        for place in places:
            path = ROOT / "tests" / place
            modules = sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
            assert any(
                isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
                for module in modules
                for node in ast.walk(ast.parse(module.read_text()))
            ), place
