"""Values that a driver and its tasks exchange: frozen and picklable, so any engine can transfer them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.table.protocol.lease import Lease
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteScope:
    """The partitions that an overwrite replaces.

    ``partitions`` None: the partitions of the new rows. Otherwise every partition that has all values of one of these
    specs; an empty spec selects the whole table.
    """

    partitions: tuple[tuple[tuple[str, object], ...], ...] | None = None

    @classmethod
    def of(cls, *specs: Mapping[str, object]) -> OverwriteScope:
        """Create the scope of the partitions that match any of ``specs``."""
        return cls(partitions=tuple(tuple(spec.items()) for spec in specs))

    @property
    def specs(self) -> list[dict[str, object]]:
        """The specs as mappings from column to value."""
        return [dict(spec) for spec in self.partitions or ()]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """A commit in progress: its user, its base snapshot, its lease, and whether its changes go to the log."""

    commit_user: str
    tracked: bool
    base_snapshot_id: int | None
    lease: Lease | None = None
    overwrite: OverwriteScope | None = None
    is_difference: bool = False
    """Whether the rows are a difference from the base snapshot's content, rather than independent appends."""

    identifiers_ascend: bool = False
    """Promises that this user's identifiers increase from commit to commit, as a stream's batch ids do: the search for
    an earlier commit of this identifier stops at the newest smaller one.
    """

    refuses_late: bool = False
    """Whether a row that an already stored version of its key hides fails the commit: see ``late_rows.py``."""

    reads_base: bool = False
    """Whether the rows were computed from those of the base snapshot, which an overwrite may replace without a lease:
    then the commit fails.
    """

    def to_json(self) -> str:
        """Return one line of JSON for an engine's options; ``InvalidInputError`` for an overwrite: its scope is not
        JSON.
        """
        if self.overwrite is not None:
            message = "the context of an overwrite can't be written as text; open it where it is used"
            raise InvalidInputError(message)
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WriteContext:
        """Parse the text of ``to_json``; ``InvalidInputError`` for other text."""
        try:
            value = json.loads(text)
            lease = value.pop("lease")
            return cls(lease=None if lease is None else Lease(**lease), **value)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{text!r} is not a write context; pass what WriteContext.to_json() returned"
            raise InvalidInputError(message) from error

    @property
    def writes_log(self) -> bool:
        """Whether tasks write rows to the log; not for an overwrite, whose net change is known only at its commit."""
        return self.tracked and self.overwrite is None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommitMessage:
    """The output of one task: files, and log transactions that are flushed but still open.

    Picklable; the driver commits or aborts both. ``row_count`` counts the written rows.
    """

    files: tuple[CommitMessage, ...] = ()
    transactions: tuple[BucketTransaction, ...] = ()
    row_count: int = 0
    assigners: tuple[int, ...] = ()
    """With dynamic buckets: the assigners whose keys this task has written, which no other task may have."""
