"""Versions of a Delta log, JSON files with one action per line, and the state that they add up to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from storage_lib.errors import CorruptFileError

NOTE = "dynamicTable"
"""Part of our commitInfo, with the snapshot that the version shows."""
OWNER_FEATURE = "dynamicTable"
"""A feature of writers that only this library has: others must not write to a table with one that they don't know."""
READER_VERSION, WRITER_VERSION = 3, 7
ENGINE = "spark-dynamic-tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFile:
    """A data file, by its path in the log. ``vector`` is Delta's descriptor of hidden rows, in file ``source``."""

    path: str
    size_bytes: int
    row_count: int
    modified_millis: int
    vector: Mapping[str, Any] | None = None
    source: str | None = None

    def is_same(self, other: LoggedFile) -> bool:
        """Whether readers see the same rows; the text of a vector may be unknown."""
        return self.path == other.path and self.source == other.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The actions that describe the table, as they stand in the log."""

    schema_text: str
    features: tuple[str, ...]
    configuration: Mapping[str, str]
    table_id: str
    created_millis: int

    @property
    def maps_names(self) -> bool:
        """Whether readers need column mapping."""
        return "columnMapping" in self.features

    def actions(self, before: Layout | None) -> list[dict[str, Any]]:
        """Return the actions that differ from the layout before."""
        found: list[dict[str, Any]] = []
        if before is None or before.features != self.features:
            found.append({"protocol": self.protocol()})
        if before is None or replace(before, features=self.features) != self:
            found.append({"metaData": self.metadata()})
        return found

    def protocol(self) -> dict[str, Any]:
        """Return the protocol action."""
        return {
            "minReaderVersion": READER_VERSION,
            "minWriterVersion": WRITER_VERSION,
            "readerFeatures": list(self.features),
            "writerFeatures": [*self.features, OWNER_FEATURE],
        }

    def metadata(self) -> dict[str, Any]:
        """Return the metaData action."""
        return {
            "id": self.table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": self.schema_text,
            "partitionColumns": [],
            "configuration": dict(self.configuration),
            "createdTime": self.created_millis,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """State of a table at a version of the log. ``snapshot_id``: 0 of an empty table, -1 of another program."""

    version: int
    snapshot_id: int
    identity: str
    layout: Layout | None = None
    files: Mapping[str, LoggedFile] = field(default_factory=dict)


NO_LOG = LogState(version=-1, snapshot_id=-1, identity="")


def encode_version(before: LogState, after: LogState, *, time_millis: int, changes_rows: bool) -> bytes:
    """Encode the version that turns ``before`` into ``after``; streams pass over it unless it ``changes_rows``."""
    note = {"snapshotId": after.snapshot_id, "identity": after.identity}
    lines: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": time_millis, "operation": "WRITE", "engineInfo": ENGINE, NOTE: note}}
    ]
    lines += [] if after.layout is None else after.layout.actions(before.layout)
    for path, old in before.files.items():
        new = after.files.get(path)
        if new is None or not new.is_same(old):
            lines.append({"remove": _remove(old, time_millis, changes_rows=changes_rows)})
    for path, new in after.files.items():
        known = before.files.get(path)
        if known is None or not known.is_same(new):
            lines.append({"add": add_action(new, changes_rows=changes_rows)})
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines).encode()


def add_action(file: LoggedFile, *, changes_rows: bool) -> dict[str, Any]:
    """Return the add action of a file."""
    action: dict[str, Any] = {
        "path": file.path,
        "partitionValues": {},
        "size": file.size_bytes,
        "modificationTime": file.modified_millis,
        "dataChange": changes_rows,
        "stats": json.dumps({"numRecords": file.row_count, "tightBounds": False}, separators=(",", ":")),
    }
    if file.vector is not None:
        action["deletionVector"] = dict(file.vector)
        action["tags"] = {NOTE: file.source}
    return action


def _remove(file: LoggedFile, time_millis: int, *, changes_rows: bool) -> dict[str, Any]:
    action: dict[str, Any] = {"path": file.path, "deletionTimestamp": time_millis, "dataChange": changes_rows}
    if file.vector is not None:
        action["deletionVector"] = dict(file.vector)
    return action


def applied(state: LogState, version: int, data: bytes, source: str) -> LogState:
    """Return the state after the version in ``data``. Raises ``CorruptFileError`` if it cannot be decoded."""
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
        return applied_actions(state, version, actions)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{source} is not a valid version of a Delta log: {error!r}"
        raise CorruptFileError(message) from error


def applied_actions(state: LogState, version: int, actions: Iterable[Mapping[str, Any]]) -> LogState:
    """Return the state after decoded actions."""
    files, layout, features = dict(state.files), state.layout, None if state.layout is None else state.layout.features
    snapshot_id, identity = -1, ""
    described: Mapping[str, Any] | None = None
    for action in actions:
        if action.get("commitInfo") is not None:
            note = action["commitInfo"].get(NOTE) or {}
            snapshot_id, identity = int(note.get("snapshotId", -1)), str(note.get("identity", ""))
        if action.get("remove") is not None:
            files.pop(action["remove"]["path"], None)
        if action.get("protocol") is not None:
            features = tuple(action["protocol"].get("readerFeatures") or ())
        if action.get("metaData") is not None:
            described = action["metaData"]
    for action in actions:
        if action.get("add") is not None:
            added = logged_file(action["add"])
            files[added.path] = added
    if described is not None:
        layout = Layout(
            schema_text=described["schemaString"],
            features=features or (),
            configuration=dict(described.get("configuration") or {}),
            table_id=described["id"],
            created_millis=int(described.get("createdTime") or 0),
        )
    elif layout is not None:
        layout = replace(layout, features=features or ())
    return LogState(version=version, snapshot_id=snapshot_id, identity=identity, layout=layout, files=files)


def logged_file(action: Mapping[str, Any]) -> LoggedFile:
    """Return the file of an add action."""
    vector = action.get("deletionVector")
    tags = dict(action.get("tags") or {})
    return LoggedFile(
        path=action["path"],
        size_bytes=int(action["size"]),
        row_count=int(json.loads(action.get("stats") or "{}").get("numRecords", -1)),
        modified_millis=int(action["modificationTime"]),
        vector=None if vector is None else {name: value for name, value in dict(vector).items() if value is not None},
        source=tags.get(NOTE),
    )
