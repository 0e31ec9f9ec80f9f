"""Extensions by other packages, found by entry points: the entry's name is the option value that selects it.

| group | option | called with | makes |
|---|---|---|---|
| `dynamic_tables.catalogs` | `metastore` | warehouse, options | a `Catalog` |
| `dynamic_tables.log_systems` | `log.system` | `LogRequest` | a `LogStore` |
| `dynamic_tables.file_formats` | `file.format` | nothing | a `FileFormat` |
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import EntryPoints, entry_points
from typing import Any

from storage_lib.errors import InvalidInputError


class Extension(StrEnum):
    """Groups of entry points."""

    CATALOGS = "dynamic_tables.catalogs"
    LOG_SYSTEMS = "dynamic_tables.log_systems"
    FILE_FORMATS = "dynamic_tables.file_formats"


def added_names(of: Extension) -> list[str]:
    """Return the names that installed packages add, sorted, without importing the packages."""
    return sorted(_entries(of, tuple(sys.path)).names)


def added(of: Extension, name: str) -> Callable[..., Any]:
    """Load the factory of that name.

    Raises ``InvalidInputError`` if no package adds one, if several do, and naming the package if it can't be imported.
    """
    found = [each for each in _entries(of, tuple(sys.path)) if each.name == name]
    if not found:
        message = f"no installed package adds {name!r} to {of}; there are {', '.join(added_names(of)) or 'none'}"
        raise InvalidInputError(message)
    values = {each.value for each in found}
    if len(values) > 1:
        message = f"several packages add {name!r} to {of}: {', '.join(sorted(values))}; uninstall all but one"
        raise InvalidInputError(message)
    try:
        made: Callable[..., Any] = found[0].load()
    except (ImportError, AttributeError) as error:
        package = "" if found[0].dist is None else f" of package {found[0].dist.name}"
        message = f"entry point {found[0].value}{package}, which adds {name!r} to {of}, can't be loaded: {error}"
        raise InvalidInputError(message) from error
    return made


@functools.cache
def _entries(of: Extension, _path: tuple[str, ...]) -> EntryPoints:
    """Look up entry points once per ``sys.path``: it opens a file of every installed package, which takes 15 ms."""
    return entry_points(group=of)
