"""Snapshot kept under a name, however old it is: the snapshot's JSON with extra keys (docs/format.md, 1.16)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot, encode_snapshot

WORK_TAG_PREFIX = "restoring-"
"""Prefix of the names of tags that protect a snapshot only while it is being restored."""
VIEW_TAG_PREFIX = "iceberg-view-"
"""Prefix of the names of tags that protect the snapshot which the table's Iceberg view shows."""
_CREATE_TIME = "tagCreateTime"
_TIME_RETAINED = "tagTimeRetained"
_CREATE_MILLIS = "tagCreateTimeMillis"
_KEYS = (_CREATE_TIME, _TIME_RETAINED, _CREATE_MILLIS)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """Named snapshot; ``create_time_ms`` is in epoch milliseconds. Without ``time_retained_ms`` it never expires."""

    name: str
    snapshot: Snapshot
    create_time_ms: int | None = None
    time_retained_ms: int | None = None

    def is_expired(self, now_ms: int) -> bool:
        """Return whether its retention has ended."""
        if self.create_time_ms is None or self.time_retained_ms is None:
            return False
        return self.create_time_ms + self.time_retained_ms <= now_ms


def check_reference_name(what: str, name: str) -> None:
    """Refuse names of tags, branches and consumers that can't be file names or that other engines refuse."""
    if not _NAME.fullmatch(name) or name.isdigit():
        message = (
            f"{name!r} is not a valid name for a {what}: use letters, digits, '_', '-' and '.', at most 128, and not "
            "digits only"
        )
        raise InvalidInputError(message)


def encode_tag(tag: Tag) -> bytes:
    """Return the content of the file. It has the time twice: as other engines write it, without a zone, and exactly."""
    more: dict[str, object] = {}
    if tag.create_time_ms is not None:
        local = datetime.fromtimestamp(tag.create_time_ms / 1000, UTC).astimezone()
        nanos = tag.create_time_ms % 1000 * 1_000_000
        more[_CREATE_TIME] = [local.year, local.month, local.day, local.hour, local.minute, local.second, nanos]
        more[_CREATE_MILLIS] = tag.create_time_ms
    if tag.time_retained_ms is not None:
        more[_TIME_RETAINED] = tag.time_retained_ms / 1000
    return encode_snapshot(replace(tag.snapshot, unknown={**tag.snapshot.unknown, **more}))


def decode_tag(name: str, data: bytes, source: str) -> Tag:
    """Decode a tag; raises ``CorruptFileError`` naming ``source`` if it is invalid."""
    snapshot = decode_snapshot(data, source)
    more = {key: snapshot.unknown[key] for key in _KEYS if key in snapshot.unknown}
    rest = {key: value for key, value in snapshot.unknown.items() if key not in _KEYS}
    try:
        create_time_ms = more.get(_CREATE_MILLIS)
        if not isinstance(create_time_ms, int):
            create_time_ms = _millis_of(more.get(_CREATE_TIME))
        return Tag(
            name=name,
            snapshot=replace(snapshot, unknown=rest),
            create_time_ms=create_time_ms,
            time_retained_ms=_duration_millis(more.get(_TIME_RETAINED)),
        )
    except (TypeError, ValueError) as error:
        message = f"{source} has a tag time that can't be read: {error}"
        raise CorruptFileError(message) from error


def _millis_of(value: object) -> int | None:
    """Convert a time in Java's JSON form, ``[2024, 5, 14, 1, 2, 3, 456000000]``, or ISO text, in the local zone."""
    if value is None:
        return None
    if isinstance(value, str):
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    if not isinstance(value, Sequence) or not all(isinstance(part, int) for part in value):
        message = f"{value!r} is not a time"
        raise ValueError(message)
    parts: list[int] = [*value, *[0] * (7 - len(value))]
    year, month, day, hour, minute, second, nanos = parts[:7]
    local = datetime(year, month, day, hour, minute, second, nanos // 1000)  # noqa: DTZ001  as it was written
    moment = local.astimezone()
    return round(moment.timestamp() * 1000)


def _duration_millis(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, int | float):
        return round(value * 1000)
    found = _DURATION.fullmatch(str(value))
    if found is None:
        message = f"{value!r} is not a duration"
        raise ValueError(message)
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((hours * 3600 + minutes * 60 + seconds) * 1000)
