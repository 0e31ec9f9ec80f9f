"""Number of the library's files that one operation passes through, which a reader who follows it has to open.

    python -m benchmarks.files_entered [--sql]

*files*: number of files of ``storage_lib`` with a function that is called. *changes*: number of calls into another file
than the call before. Neither depends on the machine; the table is small and in memory, with a key, a log and
pre-images. "load, to_arrow" opens the catalog of a directory first. ``--sql`` adds an INSERT and a SELECT by Spark SQL,
as seen from the driver.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import pyarrow as pa

from storage_lib import DynamicTable, MemoryCatalog, open_catalog

LIBRARY = str(Path(__file__).parent.parent / "storage_lib")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesEntered:
    """Files in the order in which their functions were called."""

    entered: tuple[str, ...]

    @property
    def files(self) -> int:
        """Number of distinct files."""
        return len(set(self.entered))

    @property
    def changes(self) -> int:
        """Number of calls into another file than the call before."""
        return sum(one != other for one, other in zip(self.entered, self.entered[1:], strict=False))


def path_of(operation: Callable[[], object]) -> FilesEntered:
    """Run ``operation`` and return the files that it passes through in this thread."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(LIBRARY):
            entered.append(name)

    sys.setprofile(note)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return FilesEntered(entered=tuple(entered))


def orders() -> DynamicTable:
    """Create a table with a key, partitions and a log with pre-images."""
    columns = pa.schema([("dt", pa.string()), ("id", pa.int64()), ("price", pa.int64())])
    return MemoryCatalog().create_table("shop.orders", columns, primary_key=["dt", "id"], partition_by=["dt"])


def rows(price: int) -> pa.Table:
    """Return two rows of one partition."""
    return pa.table({"dt": ["a", "a"], "id": [1, 2], "price": [price, price]})


def of_the_table() -> dict[str, FilesEntered]:
    """Measure each operation at its second run, when all modules are loaded and objects built."""
    table = orders()
    paths = {}
    for price in range(2):
        source = table.stream()
        paths["append"] = path_of(partial(table.append, rows(price)))
        paths["to_arrow"] = path_of(table.to_arrow)
        paths["first poll"] = path_of(source.poll)
        table.append(rows(10 + price))
        paths["poll"] = path_of(source.poll)
        paths["compact"] = path_of(table.compact)
    return paths


def of_a_load() -> dict[str, FilesEntered]:
    """Measure the second time that a catalog is opened and one of its tables loaded and read."""
    with tempfile.TemporaryDirectory() as warehouse:
        table = open_catalog(warehouse).create_table(
            "shop.orders", rows(0).schema, primary_key=["dt", "id"], partition_by=["dt"]
        )
        for price in range(2):
            table.append(rows(price))
            path = path_of(lambda: open_catalog(warehouse).load_table("shop.orders").to_arrow())
    return {"load, to_arrow": path}


def of_sql() -> dict[str, FilesEntered]:
    """Measure the second INSERT by Spark SQL, and a SELECT that merges rows."""
    from storage_lib import spark, sql  # noqa: PLC0415  Spark is started only if it is asked for

    with (
        spark.session(master="local[1]") as running,
        tempfile.TemporaryDirectory() as warehouse,
        sql.Session(running, open_catalog(warehouse)) as session,
    ):
        session.execute("CREATE TABLE shop.orders (id BIGINT, price BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
        session.execute("INSERT INTO shop.orders VALUES (1, 10)")
        insert = path_of(partial(session.execute, "INSERT INTO shop.orders VALUES (2, 20)"))
        query = "SELECT price, count(*) FROM shop.orders WHERE id > 0 GROUP BY price"
        for _ in range(2):
            select = path_of(lambda: session.execute(query).to_arrow())
        return {"SQL INSERT": insert, "SQL SELECT": select}


def main() -> None:
    """Print one JSON record per operation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sql", action="store_true", help="also an INSERT and a SELECT; starts Spark")
    arguments = parser.parse_args()
    paths = of_the_table() | of_a_load() | (of_sql() if arguments.sql else {})
    for operation, path in paths.items():
        print(json.dumps({"operation": operation, "files": path.files, "changes": path.changes}))


if __name__ == "__main__":
    main()
