"""Every storage by name, each with a separate location, for suites that all of them must pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib.io.file_io import FileIO
from storage_lib.io.file_io_factory import file_io_of
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.extras import needed
from tests.support.faulty_file_io import FaultyFileIO

if TYPE_CHECKING:
    from obstore.store import MemoryStore

    from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO

WITH_DIRECTORIES = (
    "local",
    "local-not-durable",
    "memory",
    "faulty-without-fault",
    pytest.param("hdfs", marks=[pytest.mark.hdfs, pytest.mark.integration]),
)
WITHOUT_DIRECTORIES = (
    "objects-in-memory",
    pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.integration]),
)
ALL = (*WITH_DIRECTORIES, *WITHOUT_DIRECTORIES)
OF_SERVERS = ("local", WITH_DIRECTORIES[-1], WITHOUT_DIRECTORIES[-1])
"""Storages that several processes can share."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Storage under test; ``options`` are those that ``open_catalog`` needs besides a URL below ``root``."""

    files: FileIO
    root: str
    options: Mapping[str, str] = field(default_factory=dict)


def open_storage(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Return a new, empty location in the named storage."""
    root = f"{tmp_path}/table"
    if name == "s3":
        options = request.getfixturevalue("s3").options
        return Storage(files=file_io_of("s3://lake", options), root=f"s3://lake{root}", options=options)
    if name == "hdfs":
        url = request.getfixturevalue("hdfs").url
        return Storage(files=file_io_of(url, {}), root=f"{url}{root}")
    if name == "objects-in-memory":
        return Storage(files=objects_in_memory(), root=f"s3://lake{root}")
    make: dict[str, Callable[[], FileIO]] = {
        "local": LocalFileIO,
        "local-not-durable": lambda: LocalFileIO(durable=False),
        "memory": MemoryFileIO,
        "faulty-without-fault": lambda: FaultyFileIO(LocalFileIO()),
    }
    return Storage(files=make[name](), root=root)


def objects_in_memory(memory: MemoryStore | None = None) -> ObjectStoreFileIO:
    """Return the object store client over a store in memory, a new one by default: only the network is missing."""
    needed("obstore")
    from obstore.store import MemoryStore

    from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO

    memory = memory or MemoryStore()

    def open_store(url: str, options: Mapping[str, str], *, repeats: bool = True) -> MemoryStore:
        return memory

    return ObjectStoreFileIO(open_store=open_store)
