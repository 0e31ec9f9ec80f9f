"""Consumers: readers that protect snapshots they have yet to read; each stores its next one (docs/format.md, 1.16)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from storage_lib.errors import NotFoundError
from storage_lib.file_store.snapshot.tag import check_reference_name
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.overwritten_file import read_overwritten
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.encoding.json_document import decode_json, int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A reader and its next snapshot; ``modified_ms`` is its last update by the storage's clock (epoch)."""

    name: str
    next_snapshot_id: int
    modified_ms: int


class ConsumerDirectory:
    """Consumers of one branch."""

    def __init__(self, environment: Environment, paths: TablePaths) -> None:
        self._file_io = environment.file_io
        self._clock = environment.clock
        self._paths = paths

    def put(self, name: str, next_snapshot_id: int) -> None:
        """Store the next snapshot of a consumer, new or existing; durable."""
        check_reference_name("consumer", name)
        path = self._paths.consumer_path(name)
        self._file_io.replace(path, json.dumps({"nextSnapshot": next_snapshot_id}).encode())
        self._file_io.sync([path])

    def load(self, name: str) -> Consumer:
        """Return one consumer; raises ``NotFoundError`` listing the existing ones."""
        known = self.load_all()
        for consumer in known:
            if consumer.name == name:
                return consumer
        names = ", ".join(consumer.name for consumer in known) or "none"
        message = f"there is no consumer {name!r} ({self._paths.consumer_path(name)}); consumers there: {names}"
        raise NotFoundError(message)

    def load_all(self) -> list[Consumer]:
        """Return every consumer, sorted by name.

        A file that another engine is overwriting is read again. Raises ``CorruptFileError`` for one that stays
        unreadable, since the snapshots that it protects must not expire.
        """
        consumers = []
        for entry in self._file_io.list_directory(self._paths.consumer_directory):
            name = self._paths.consumer_of_file(entry.name)
            if name is None:
                continue
            path = self._paths.consumer_path(name)
            try:
                next_snapshot_id = read_overwritten(self._clock, partial(self._next_id, path), is_listed=True)
            except NotFoundError:
                continue
            consumers.append(Consumer(name=name, next_snapshot_id=next_snapshot_id, modified_ms=entry.modified_ms))
        return sorted(consumers, key=lambda consumer: consumer.name)

    def delete(self, name: str) -> None:
        """Delete a consumer, if it exists."""
        self._file_io.delete(self._paths.consumer_path(name), below=self._paths.root)

    def _next_id(self, path: str) -> int:
        return _decoded(self._file_io.read_bytes(path), path)


def _decoded(data: bytes, path: str) -> int:
    return decode_json(
        data,
        lambda document: int64(document["nextSnapshot"]),
        lambda defect: (
            f"{path} has no valid next snapshot ({defect}): rewrite it, or delete it if the consumer is unused"
        ),
    )
