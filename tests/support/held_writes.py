"""Blocks before the first visible write, or the first deletion, so that a test can end the process there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["held_before"]

# Path parts of files that make an operator's work visible to others; expiry and clean-up delete files instead.
VISIBLE = ("/snapshot/snapshot-", "/tag/", "/branch/", "/schema/schema-")
MUTATIONS = ("create_if_absent", "write_bytes", "replace")
DELETIONS = ("delete", "delete_tree")


@contextmanager
def held_before(wait: Callable[[], None], *, deletions: bool = True) -> Iterator[None]:
    """Call ``wait`` once at that point; without ``deletions`` only before writes."""
    from storage_lib.io.local.local_file_io import LocalFileIO

    kept = {name: getattr(LocalFileIO, name) for name in (*MUTATIONS, *DELETIONS)}
    waited = False

    def held(name: str) -> Any:
        def call(self: Any, path: str, *arguments: Any, **named: Any) -> Any:
            nonlocal waited
            deletes = deletions and name in DELETIONS
            if not waited and (deletes or (name in MUTATIONS and any(part in path for part in VISIBLE))):
                waited = True
                wait()
            return kept[name](self, path, *arguments, **named)

        return call

    for name in kept:
        setattr(LocalFileIO, name, held(name))
    try:
        yield
    finally:
        for name, method in kept.items():
            setattr(LocalFileIO, name, method)
