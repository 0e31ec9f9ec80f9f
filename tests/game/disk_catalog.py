"""A catalog on the local disk, under a clock of its own: a materialized table finds its sources by their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.support.fake_environment import FakeClock, fake_environment

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO

OPTIONS = {"log.system": "none"}


def disk_catalog(directory: str, clock: FakeClock, names: str, files: FileIO | None = None) -> WarehouseCatalog:
    """Return a catalog over ``files`` on the local disk, whose tables have no logs."""
    environment = fake_environment(files or LocalFileIO(durable=False), clock=clock, names=names)
    return WarehouseCatalog(directory, OPTIONS, environment=environment)
