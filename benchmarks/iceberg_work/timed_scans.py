"""Runs in the interpreter of .local/iceberg: scans tables by PyIceberg and DuckDB, in turns.

    python timed_scans.py '{"tables": {name: path of metadata}, "rounds": 5}'

Prints a JSON object: the seconds of each scan, by reader, work and table, and count and sum of each table.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro  # type: ignore[import-not-found]  # of the other environment
import duckdb_extension_iceberg  # type: ignore[import-not-found]
import pyarrow.compute as pc
from pyiceberg.table import StaticTable


def main(tables: dict[str, str], rounds: int) -> dict[str, Any]:
    works = {"pyiceberg": pyiceberg_works(), "duckdb": duckdb_works()}
    seconds: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    for reader, scans in works.items():
        seconds[reader] = {work: {name: [] for name in tables} for work in scans}
        for number in range(rounds + 1):
            for work, scan in scans.items():
                for name, metadata in tables.items():
                    started = time.perf_counter()
                    answer = scan(metadata)
                    taken = time.perf_counter() - started
                    if number:  # the first round warms caches
                        seconds[reader][work][name].append(taken)
                    answers.setdefault(name, {})[f"{reader}, {work}"] = answer
    return {"seconds": seconds, "answers": answers}


def pyiceberg_works() -> dict[str, Callable[[str], list[int]]]:
    def scan(metadata: str, *columns: str) -> list[int]:
        rows = StaticTable.from_metadata(metadata).scan(selected_fields=columns or ("*",)).to_arrow()
        return [rows.num_rows, pc.sum(rows["n"]).as_py()]

    return {"all rows": scan, "sum of a column": lambda metadata: scan(metadata, "n")}


def duckdb_works() -> dict[str, Callable[[str], list[int]]]:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for module in (duckdb_extension_avro, duckdb_extension_iceberg):
        (file,) = Path(module.__file__).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{file}'")

    def scan(metadata: str) -> list[int]:
        rows: Any = connection.execute("SELECT * FROM iceberg_scan(?)", [metadata]).to_arrow_table()
        return [rows.num_rows, pc.sum(rows["n"]).as_py()]

    def total(metadata: str) -> list[int]:
        found = connection.execute("SELECT count(*), sum(n) FROM iceberg_scan(?)", [metadata]).fetchone()
        return [int(each) for each in found or ()]

    return {"all rows": scan, "sum of a column": total}


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(main(asked["tables"], asked["rounds"])))
