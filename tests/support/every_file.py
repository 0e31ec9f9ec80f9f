"""Lists a table's files, and which of them are needed, independently of the library's clean-up code."""

from __future__ import annotations

from storage_lib import DynamicTable
from storage_lib.file_store.store import FileStore
from storage_lib.io.file_io import FileIO
from storage_lib.schema.options.external_paths import declared_directories, io_path


def every_file(files: FileIO, directory: str) -> set[str]:
    """Return the paths of all files below a directory."""
    found: set[str] = set()
    for entry in files.list_directory(directory):
        path = f"{directory}/{entry.name}"
        found |= every_file(files, path) if entry.is_directory else {path}
    return found


def data_files(table: DynamicTable) -> set[str]:
    """Return the paths of the data files in the table's directory and in its external directories."""
    roots = (table.location, *(io_path(url) for url in declared_directories(table.schema.options)))
    return {path for root in roots for path in every_file(table.environment.stores, root) if "/data-" in path}


def manifests(table: DynamicTable) -> set[str]:
    """Return the paths of the table's manifests and manifest lists."""
    return every_file(table.environment.file_io, f"{table.location}/manifest")


def needed_by_snapshots(*stores: FileStore) -> set[str]:
    """Return the data files of every retained snapshot and tag of these stores, planned one by one."""
    needed: set[str] = set()
    for store in stores:
        earliest, latest = store.snapshots.earliest_id(), store.snapshots.latest_id()
        ids = range(0) if earliest is None or latest is None else range(earliest, latest + 1)
        snapshots = [*(store.snapshots.load(n) for n in ids), *(tag.snapshot for tag in store.tags.load_all())]
        for snapshot in snapshots:
            for entry in store.scan.plan(snapshot).entries:
                needed.update(store._data_files.of(entry))
    return needed
