"""The changes of one bucket between two snapshots, as work for one task: frozen and picklable."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStep:
    """Either files whose rows are the changes, in order, or two sets of files to compare."""

    snapshot_id: int
    appended: Split | None = None
    before: tuple[DataFileMeta, ...] = ()
    after: tuple[DataFileMeta, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSplit:
    """Steps of one bucket in commit order; ``is_net`` asks for the newest change of each key only."""

    partition: bytes
    bucket: int
    steps: tuple[ChangeStep, ...]
    is_net: bool

    @property
    def row_count(self) -> int:
        """Number of physical rows to read."""
        return sum(file.row_count for file in self.files())

    @property
    def size_bytes(self) -> int:
        """Number of bytes to read."""
        return sum(file.file_size for file in self.files())

    def files(self) -> tuple[DataFileMeta, ...]:
        """Return all files of all steps."""
        return tuple(
            file
            for step in self.steps
            for file in (*(() if step.appended is None else step.appended.files), *step.before, *step.after)
        )
