"""Measured systems by name."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.deltalake import DeltaLake
from benchmarks.peers.duckdb import DuckDb
from benchmarks.peers.ours import Ours
from benchmarks.peers.paimon_rust import PaimonRust
from benchmarks.peers.plain_parquet import PlainParquet
from benchmarks.peers.system import System

NAMES = ("ours", "ours without fsync", "pypaimon-rust", "deltalake", "duckdb", "plain parquet")
"""Names in the order of a round."""


def system_called(name: str, directory: Path) -> System:
    """Return the system of that name; ``directory`` is empty or has the system's earlier table."""
    match name:
        case "ours":
            return Ours(directory, durable=True)
        case "ours without fsync":
            return Ours(directory, durable=False)
        case "pypaimon-rust":
            return PaimonRust(directory)
        case "deltalake":
            return DeltaLake(directory)
        case "duckdb":
            return DuckDb(directory)
        case "plain parquet":
            return PlainParquet(directory)
        case _:
            raise ValueError(f"no system is called {name!r}; there are {', '.join(NAMES)}")
