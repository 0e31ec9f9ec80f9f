"""Commits whose snapshots have expired, so that the same identity does not commit again (docs/format.md, 1.16).

    commits/commits-<n>-<hash>      the commits of all snapshots below n, as JSON; n is the earliest snapshot

An expiry writes the next file before it moves EARLIEST, and deletes older ones after the expired snapshots: a slower
expiry may move EARLIEST back to one of these. The hash is that of snapshot n, which has one history: a file that an
interrupted expiry wrote for a snapshot that another engine rolled back is not read. Files are never changed. If other
engines have moved EARLIEST, the newest file up to it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.commit_record import CommitRecord
from storage_lib.file_store.snapshot.past_commits import NEWEST_KEPT, PastCommits
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.schema.encoding.json_document import decode_json, int64

if TYPE_CHECKING:
    from storage_lib.io.file_io import FileIO
    from storage_lib.io.table_directory.table_paths import TablePaths

_PREFIX = "commits-"
_HASH_DIGITS = 16
_COLUMNS = ("snapshot", "identifier", "time", "schema", "total", "delta")


class ExpiredCommits:
    """Files of one branch."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._directory = paths.commit_directory
        self._root = paths.root

    def read(self, earliest: Snapshot) -> PastCommits | None:
        """Return the commits of the snapshots below ``earliest``; None if their file has just been deleted.

        Raises ``CorruptFileError`` for a damaged file.
        """
        path = self._path(earliest)
        try:
            return self._decoded(path)
        except NotFoundError:
            pass
        names = {number: name for number, name in self._files() if number <= earliest.id}
        if not names:
            return PastCommits(below=earliest.id)
        try:
            past = self._decoded(f"{self._directory}/{names[max(names)]}")
        except NotFoundError:
            return None
        return PastCommits(below=earliest.id, records=past.records)

    def write(self, commits: PastCommits, earliest: Snapshot) -> None:
        """Write the commits of all snapshots below ``earliest``, before it becomes the earliest. Durable."""
        # Another expiry that has written the file knew the same history.
        self._file_io.create_if_absent(self._path(earliest), _encode(commits))

    def names(self) -> frozenset[str]:
        """Return the names of the files, for ``newest_of``."""
        return frozenset(name for _, name in self._files())

    def newest_of(self, names: Iterable[str], above: int, load: Callable[[int], Snapshot]) -> int | None:
        """Return the newest snapshot above ``above`` that one of the files ``names`` is for; None without one.

        ``load`` returns a snapshot: a file for one that another engine has rolled back does not count.
        """
        for number in sorted({found for name in names if (found := _number_in(name)) is not None}, reverse=True):
            if number <= above:
                return None
            with suppress(NotFoundError, SnapshotExpiredError):
                if self._path(load(number)).rpartition("/")[2] in names:
                    return number
        return None

    def delete_below(self, earliest_id: int) -> None:
        """Delete the files for older snapshots than the earliest one."""
        for number, name in self._files():
            if number < earliest_id:
                self._file_io.delete(f"{self._directory}/{name}", below=self._root)

    def _path(self, earliest: Snapshot) -> str:
        # The names of manifest lists are unique, also where another engine writes no uuid.
        digest = hashlib.sha256(f"{earliest.delta_manifest_list}/{earliest.uuid}".encode()).hexdigest()[:_HASH_DIGITS]
        return f"{self._directory}/{_PREFIX}{earliest.id}-{digest}"

    def _files(self) -> Iterator[tuple[int, str]]:
        for entry in self._file_io.list_directory(self._directory):
            number = _number_in(entry.name)
            if number is not None:
                yield number, entry.name

    def _decoded(self, path: str) -> PastCommits:
        return decode_json(
            self._file_io.read_bytes(path),
            _decode,
            lambda defect: (
                f"{path} does not list the commits of expired snapshots: {defect}. Restore the file; if it is deleted, "
                "a commit that it lists is made again when it is repeated"
            ),
        )


def _number_in(name: str) -> int | None:
    number = name.removeprefix(_PREFIX).partition("-")[0]
    return int(number) if name.startswith(_PREFIX) and number.isascii() and number.isdigit() else None


def _encode(commits: PastCommits) -> bytes:
    records = commits.records
    users = sorted({each.user for each in records})
    places = {user: place for place, user in enumerate(users)}
    document = {
        "version": 1,
        "below": commits.below,
        "users": users,
        "user": [places[each.user] for each in records],
        "snapshot": [each.snapshot_id for each in records],
        "identifier": [each.identifier for each in records],
        "kind": [each.kind.value for each in records],
        "time": [each.time_millis for each in records],
        "schema": [each.schema_id for each in records],
        "total": [each.total_record_count for each in records],
        "delta": [each.delta_record_count for each in records],
        "uuids": {each.snapshot_id: each.uuid for each in records[-NEWEST_KEPT:] if each.uuid is not None},
        "rollbacks": {each.snapshot_id: each.rolled_back_to for each in records if each.rolled_back_to is not None},
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(document: Any) -> PastCommits:
    if document["version"] != 1:
        message = f"its version is {document['version']}, which needs a newer release of this library"
        raise ValueError(message)
    users = [str(user) for user in document["users"]]
    columns = ([int64(each) for each in document[name]] for name in _COLUMNS)
    rows = zip(document["user"], document["kind"], *columns, strict=True)
    uuids, rollbacks = document["uuids"], document["rollbacks"]
    records = []
    for user, kind, snapshot, identifier, time, schema, total, delta in rows:
        target = rollbacks.get(str(snapshot))
        records.append(
            CommitRecord(
                snapshot_id=snapshot,
                user=users[user],
                identifier=identifier,
                kind=CommitKind(kind),
                time_millis=time,
                schema_id=schema,
                total_record_count=total,
                delta_record_count=delta,
                uuid=uuids.get(str(snapshot)),
                rolled_back_to=None if target is None else int64(target),
            )
        )
    return PastCommits(below=int64(document["below"]), records=tuple(records))
