"""The states of a table of Delta Lake. State ``n`` is version ``n - 1``, because 0 is the table without rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.io.file_io import FileIO
from storage_lib.lakes.delta_table import DeltaVersion
from storage_lib.lakes.lake_columns import schema_of
from storage_lib.lakes.lake_history import LakeFile, LakeFiles, LakeHistory

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

_COLUMN_ID = "delta.columnMapping.id"
_HASH_LENGTH = 16
_FILES_CHECKED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class DeltaHistory(LakeHistory):
    """See ``LakeHistory``. ``opened`` is the newest version; ``file_io`` reads the commits in its log."""

    kind: str
    name: str
    table_id: str
    newest: int
    opened: DeltaVersion
    file_io: FileIO
    _commits: dict[int, list[Mapping[str, Any]] | None] = field(default_factory=dict, init=False, repr=False)
    _marks: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, opened: DeltaVersion, file_io: FileIO) -> DeltaHistory:
        """Return the states of a table up to its version ``opened``. Raises ``InvalidInputError``."""
        return cls(opened.KIND, opened.name, opened.table_id(), opened.version + 1, opened, file_io)

    def schema(self) -> TableSchema:
        """See ``LakeHistory``."""
        return self.schema_at(self.newest)

    def schema_at(self, number: int) -> TableSchema:
        """See ``LakeHistory``."""
        columns = self._readable(number).schema()
        ids = {each.name: int((each.metadata or {}).get(_COLUMN_ID.encode(), 0)) for each in columns}
        return schema_of(self.name, columns, ids)

    def mark(self, number: int) -> str:
        """See ``LakeHistory``: a hash of the commit, which Delta Lake keeps for 30 days unless told otherwise."""
        self._commit(number)
        if number not in self._marks:
            message = f"{self.named(number)} of {self.name} has expired: its commit is not in the log any more"
            raise SnapshotExpiredError(message)
        return self._marks[number]

    def time_millis(self, number: int) -> int:
        """See ``LakeHistory``: as the writer's clock has it."""
        self.mark(number)
        found = (each["commitInfo"].get("timestamp") for each in self._commit(number) or () if "commitInfo" in each)
        return int(next(found, None) or 0)

    def named(self, number: int) -> str:
        """See ``LakeHistory``."""
        return f"version {number - 1}" if number else "the empty table"

    def version(self, number: int) -> DeltaVersion:
        """See ``LakeHistory``."""
        return replace(self.opened, version=number - 1)

    def following(self, number: int) -> int | None:
        """See ``LakeHistory``."""
        return number + 1 if number < self.newest else None

    def files(self, number: int) -> LakeFiles | None:
        """See ``LakeHistory``; None where delta-rs reads a table as a whole."""
        found = self._readable(number).data_files()
        return None if found is None else {each.path: each for each in found}

    def listed(self, number: int) -> list[LakeFile]:
        """See ``LakeHistory``."""
        return self._readable(number).listed_files()

    def rearrangements(self, before: int, after: int) -> Iterator[tuple[int, int]]:
        """See ``LakeHistory``: commits of which every action says so, such as those of OPTIMIZE."""
        for number in range(before + 1, after + 1):
            actions = [
                each.get("add") or each.get("remove") or {} for each in self._commit(number) or () if _is_of_file(each)
            ]
            if actions and not any(each.get("dataChange", True) for each in actions):
                yield number - 1, number

    def missing(self, files: Iterable[LakeFile]) -> str | None:
        """See ``LakeHistory``. Looks for a thousand files; the read itself finds the others."""
        for place, each in enumerate(files):
            if place >= _FILES_CHECKED_MAX:
                break
            if not self.file_io.exists(f"{self.opened.location}/{each.path}"):
                return each.path
        return None

    def _readable(self, number: int) -> DeltaVersion:
        """Return a version that delta-rs can open. Raises ``SnapshotExpiredError`` for another one."""
        version = self.version(number)
        if number != self.newest:
            try:
                version.open()
            except InvalidInputError as error:
                message = f"{self.named(number)} of {self.name} has expired: {error}"
                raise SnapshotExpiredError(message) from error
        return version

    def _commit(self, number: int) -> list[Mapping[str, Any]] | None:
        """Return the actions of a commit; None if it is not in the log any more."""
        if number not in self._commits:
            path = f"{self.opened.location}/_delta_log/{number - 1:020}.json"
            try:
                content = self.file_io.read_bytes(path)
            except NotFoundError:
                self._commits[number] = None
            else:
                self._marks[number] = sha256(content).hexdigest()[:_HASH_LENGTH]
                self._commits[number] = [json.loads(line) for line in content.splitlines() if line.strip()]
        return self._commits[number]


def _is_of_file(action: Mapping[str, Any]) -> bool:
    return "add" in action or "remove" in action
