"""Choose the ``FileIO`` for the URL of a warehouse; a plain path or ``file:`` is this machine's disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote

from storage_lib.distribution import import_problem
from storage_lib.errors import InvalidInputError
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO

STORE_OPTION_PREFIXES = ("s3.", "gs.", "azure.", "hdfs.")
"""Prefixes of options for connections to stores: servers, credentials, time limits. Never options of a table."""

_OBJECT_STORES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")
_USUAL_SCHEMES = {"s3a": "s3", "azure": "az"}
_HDFS = ("hdfs", "viewfs")


def warehouse_root(warehouse: str) -> str:
    """Return the path of the warehouse for a ``FileIO``: a URL unchanged, a ``file:`` URL as a plain path.

    A relative path is below this process's working directory. It is made absolute here, because views, entries in
    catalogs and other processes name the files as well, and resolve a relative path against directories of their own.
    Raises ``InvalidInputError`` for an empty one, and for a ``file:`` URL of another machine.
    """
    if not warehouse.strip():
        # Probably an unset variable; "" + "/shop.db" would be at the root of this disk.
        message = "the name of the warehouse, or directory, is empty; write a path or a URL"
        raise InvalidInputError(message)
    if warehouse.startswith("file:"):
        path = warehouse.removeprefix("file:")
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost"):
                message = f"{warehouse} names the machine {host!r}; write file:///path for a directory of this one"
                raise InvalidInputError(message)
            path = slash + rest
        return local_root(unquote(path))
    return local_root(warehouse) if is_local(warehouse) else warehouse.rstrip("/")


def local_root(path: str) -> str:
    """Return a path of this machine as an absolute one; an absolute one unchanged, without slashes at its end.

    Raises ``InvalidInputError`` for a relative one if the working directory was deleted.
    """
    if path.startswith("/"):
        return path.rstrip("/")
    try:
        absolute = os.path.abspath(path)  # noqa: PTH100
    except FileNotFoundError as error:
        message = f"{path!r} is relative, and the working directory of this process was deleted; write an absolute path"
        raise InvalidInputError(message) from error
    if ".." in path.split("/") and os.path.realpath(path) != os.path.realpath(absolute):
        return os.path.realpath(path)  # behind a link, ".." is not the directory that the text has before it
    return absolute


_LOCAL = "file"


def store_family(path: str) -> str:
    """Return the kind of store of a path; one ``FileIO`` serves all paths of a kind."""
    scheme, separator, _ = path.partition("://")
    if not separator or scheme == "file":
        return _LOCAL
    return "object store" if scheme in _OBJECT_STORES else "hdfs" if scheme in _HDFS else scheme


def is_local(path: str) -> bool:
    """Return whether a path is of this machine's file systems."""
    return store_family(path) == _LOCAL


def absolute_place(path: str) -> str:
    """Return an absolute path of this machine, or a URL with the usual scheme of its store."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return os.path.abspath(path)  # noqa: PTH100
    return f"{_USUAL_SCHEMES.get(scheme, scheme)}://{rest}"


def is_same_place(path: str, other: str) -> bool:
    """Whether two paths or URLs denote the same directory, resolving links and aliases of schemes."""
    one, two = absolute_place(path), absolute_place(other)
    if one == two:
        return True
    return "://" not in one and "://" not in two and os.path.realpath(one) == os.path.realpath(two)


def file_io_of(warehouse: str, options: Mapping[str, str]) -> FileIO:
    """Return the storage of a warehouse, without connecting; ``options`` of other stores are ignored.

    Raises ``InvalidInputError`` for an unknown scheme, or one whose client is not installed.
    """
    scheme, separator, rest = warehouse.partition("://")
    if not separator or scheme == "file":
        return LocalFileIO()
    if scheme in _OBJECT_STORES and not rest.partition("/")[0]:
        message = f"{warehouse} names no bucket; write {scheme}://bucket/path"
        raise InvalidInputError(message)
    settings = tuple(sorted((key, value) for key, value in options.items() if key.startswith(STORE_OPTION_PREFIXES)))
    try:
        if scheme in _OBJECT_STORES:
            return _object_stores(settings)
        if scheme in _HDFS:
            return _hdfs(settings)
    except ImportError as error:
        raise InvalidInputError(import_problem(warehouse, error)) from error
    known = ", ".join(f"{each}://" for each in (*_OBJECT_STORES, *_HDFS))
    message = f"{warehouse}: no storage answers to {scheme}://; use a path of this machine or one of {known}"
    raise InvalidInputError(message)


# Shared by all catalogs and tables of a connection, so that they reuse open sockets.
@lru_cache(maxsize=16)
def _object_stores(settings: tuple[tuple[str, str], ...]) -> FileIO:
    from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO

    return ObjectStoreFileIO(dict(settings))


@lru_cache(maxsize=16)
def _hdfs(settings: tuple[tuple[str, str], ...]) -> FileIO:
    from storage_lib.io.remote.hdfs_file_io import HdfsFileIO

    return HdfsFileIO(dict(settings))
