"""A view as it is stored: the text of a query, with names and comments for its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storage_lib.schema.encoding.json_document import decode_json

_VERSION = 1
DROPPED = json.dumps({"version": _VERSION, "dropped": True}).encode()
"""Content of the file that drops a view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The query ``name`` (``database.view``).

    ``query`` is Spark SQL that names its tables and views as ``database.table``, so that it means the same in each
    session. ``columns`` are names for the columns of its result; () keeps those of the query.
    """

    name: str
    query: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the view as it is stored, without its name, which its directory has."""
        document = {
            "version": _VERSION,
            "query": self.query,
            "columns": list(self.columns),
            "comment": self.comment,
            "columnComments": dict(self.column_comments),
        }
        return json.dumps(document, ensure_ascii=False, indent=2).encode()

    @classmethod
    def from_json(cls, data: bytes, *, name: str, path: str) -> View | None:
        """Read a stored view; None if it was dropped.

        Raises ``CorruptFileError`` with ``path`` if it is damaged or of a newer version.
        """

        def build(found: Mapping[str, Any]) -> View | None:
            if found["version"] != _VERSION:
                message = f"version {found['version']} is not known, only {_VERSION}"
                raise ValueError(message)
            if found.get("dropped"):
                return None
            return cls(
                name=name,
                query=str(found["query"]),
                columns=tuple(map(str, found["columns"])),
                comment=None if found["comment"] is None else str(found["comment"]),
                column_comments={str(key): str(text) for key, text in found["columnComments"].items()},
            )

        return decode_json(data, build, lambda defect: f"{path} does not hold the view {name}: {defect}")
