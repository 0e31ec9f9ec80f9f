"""Locations as a Hive metastore stores them: Hadoop's paths, which are URLs without escapes."""

from __future__ import annotations

from storage_lib.io.file_io_factory import absolute_place


def hive_location(place: str) -> str:
    """Return the location of a path or URL; a relative path is below this process's working directory."""
    absolute = absolute_place(place)
    return absolute if "://" in absolute else f"file://{absolute}"


def place_of(location: str) -> str:
    """Return the absolute path or URL that a location stands for.

    A metastore writes ``file:/path``. A location of another machine's disk is returned as it is.
    """
    if not location.startswith("file:"):
        return location.rstrip("/")
    path = location.removeprefix("file:")
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in ("", "localhost"):
            return location
        path = slash + rest
    return path.rstrip("/") or "/"
