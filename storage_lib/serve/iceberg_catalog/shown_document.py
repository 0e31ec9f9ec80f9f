"""The metadata of a view as the REST catalog returns it, and the tag by which a client asks whether it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from storage_lib.serve.requests.passed_on import passed_on

ALL, REFS = "all", "refs"
_STORE_SETTINGS = {
    "s3.endpoint": ("s3.endpoint",),
    "s3.region": ("s3.region", "client.region"),
    "s3.path-style-access": ("s3.path-style-access",),
}
"""Options of the warehouse's store that clients get, and their names in Iceberg. Never its credentials."""


def of_snapshots(metadata: Mapping[str, Any], which: str) -> dict[str, Any]:
    """Return metadata with all snapshots (``all``), or with those that a branch or a tag names (``refs``)."""
    if which == ALL:
        return dict(metadata)
    named = {each["snapshot-id"] for each in metadata["refs"].values()}
    return {
        **metadata,
        "snapshots": [each for each in metadata["snapshots"] if each["snapshot-id"] in named],
        "snapshot-log": [each for each in metadata["snapshot-log"] if each["snapshot-id"] in named],
    }


def store_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return what a client has to know of the warehouse's store, from the options of the catalog."""
    return passed_on(options, _STORE_SETTINGS)


def tag_of(body: bytes) -> str:
    """Return the ETag of a response."""
    return f'"{blake2b(body, digest_size=16).hexdigest()}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Return whether the header ``If-None-Match`` of a request names this tag."""
    given = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return tag in given or "*" in given
