"""One of several processes that commit under a catalog's lock, on storage without create-if-absent.

``<warehouse> <options, as JSON> <table> <number> <commits>`` commits that many rows of its own; ``hold`` in place of
the number acquires the table's lock, reports it and never releases it.
"""

from __future__ import annotations

import json
import sys
import time

import pyarrow as pa

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.catalog.sql.sql_catalog import SqlCatalog
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO


class LackingFileIO(LocalFileIO):
    """Disk whose writes always replace an existing file, as on some object stores."""

    has_create_if_absent = False

    def create_if_absent(self, path: str, data: bytes) -> bool:
        message = f"nobody may ask this store to create {path} if it is absent"
        raise AssertionError(message)


def lacking_catalog(warehouse: str, options: dict[str, str]) -> SqlCatalog:
    """Return a catalog over such a disk."""
    return SqlCatalog(warehouse, options, environment=system_environment(LackingFileIO(durable=False)))


def main(warehouse: str, said: str, table: str, number: str, commits: str) -> None:
    options = json.loads(said)
    if number == "hold":
        factory = open_catalog(warehouse, options).lock_factory
        assert factory is not None
        with factory.create().hold(*table.split(".")):
            print("held", flush=True)
            time.sleep(600)
    opened = lacking_catalog(warehouse, options).load_table(table)
    for each in range(int(commits)):
        opened.append(pa.table({"id": pa.array([int(number) * 1000 + each], pa.int64())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
