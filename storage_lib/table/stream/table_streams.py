"""Opens stream sources for one table from its options and the caller's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import (
    LogConsistency,
    ScanNormalize,
    StartupMode,
    UntrackedScan,
)
from storage_lib.table.changelog.stateful_normalizer import StatefulNormalizer
from storage_lib.table.changelog.stream_states import StreamStates
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.stream.hybrid_source import HybridSource
from storage_lib.table.stream.untracked_watch import UntrackedWatch

if TYPE_CHECKING:
    from storage_lib.table.changelog.change_scan import ChangeScan
    from storage_lib.table.changelog.changelog_normalizer import ChangelogNormalizer
    from storage_lib.table.changelog.snapshot_changes import SnapshotChanges

_Choice = TypeVar("_Choice", bound=StrEnum)


class TableStreams:
    """Opens the streams of one table.

    ``normalizer`` is None for a table without a primary key. ``is_complete``: the changes have their pre-images
    already; ``complete_change_scan`` is then the same as ``change_scan``.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        changes: SnapshotChanges,
        change_scan: ChangeScan,
        complete_change_scan: ChangeScan,
        normalizer: ChangelogNormalizer | None,
        is_complete: bool,
    ) -> None:
        self._table = context.name
        self._uuid = context.uuid
        self._environment = context.environment
        self._schema = context.schema
        self._options = context.options
        self._file_store = context.file_store
        self._log = context.log
        self._changes = changes
        self._change_scan = change_scan
        self._complete_change_scan = complete_change_scan
        self._normalizer = normalizer
        self._is_complete = is_complete
        self._store_options = context.store_options

    @property
    def row_kind_column(self) -> str | None:
        """See ``ReadBuilder.stream_row_kind_column``."""
        return None if self._schema.is_append_only else self._options.row_kind_field

    @property
    def is_complete(self) -> bool:
        """See ``ReadBuilder.stream_is_complete``."""
        return self._is_complete

    def open(
        self,
        *,
        position: StreamPosition | None,
        startup: str | StartupMode | None,
        timestamp_millis: int | None,
        normalize: str | ScanNormalize | None,
        on_untracked: str | UntrackedScan | None,
        state_directory: str | None,
        whole_commits: bool = False,
    ) -> HybridSource:
        """See ``DynamicTable.stream``."""
        options = self._options
        if timestamp_millis is not None and not 0 <= timestamp_millis < 1 << 63:
            message = (
                f"table {self._table}: timestamp is {timestamp_millis} milliseconds since 1970; give one from 1970 on "
                "that fits into 63 bits"
            )
            raise InvalidInputError(message)
        _refuse_no_position(self._table, position)
        chosen = self._chosen(ScanNormalize, normalize, options.scan_normalize)
        return HybridSource(
            table=self._table,
            table_uuid=self._uuid,
            schema=self._schema,
            file_store=self._file_store,
            log=self._log,
            changes=self._changes,
            change_scan=self._change_scan if chosen is ScanNormalize.NONE else self._complete_change_scan,
            normalizer=self._normalizer_of(chosen, state_directory),
            watch=self._watch(self._chosen(UntrackedScan, on_untracked, options.scan_on_untracked)),
            row_kind_column=self.row_kind_column,
            split_target_bytes=options.source_split_target_size_bytes,
            startup=self._chosen(StartupMode, startup, options.log_scan),
            timestamp_millis=options.log_scan_timestamp_millis if timestamp_millis is None else timestamp_millis,
            position=position,
            whole_commits=whole_commits and options.log_consistency is LogConsistency.TRANSACTIONAL,
            clock=self._environment.clock,
        )

    def keeps_state(self, normalize: str | ScanNormalize | None) -> bool:
        """See ``ReadBuilder.keeps_stream_state``."""
        chosen = self._chosen(ScanNormalize, normalize, self._options.scan_normalize)
        if chosen is not ScanNormalize.STATE or self._normalizer is None:
            return False
        self._refuse_state_without_log()
        return True

    def _normalizer_of(
        self, chosen: ScanNormalize, state_directory: str | None
    ) -> ChangelogNormalizer | StatefulNormalizer | None:
        if chosen is ScanNormalize.NONE or self._normalizer is None:
            return None
        if chosen is ScanNormalize.LOOKUP:
            return None if self._is_complete else self._normalizer
        self._refuse_state_without_log()
        states = StreamStates(
            table=self._table,
            uuid=self._uuid,
            environment=self._environment,
            schema=self._schema,
            directory=state_directory,
            store_options=self._store_options,
        )
        return StatefulNormalizer(without_state=self._normalizer, file_store=self._file_store, open_state=states.of)

    def _refuse_state_without_log(self) -> None:
        if self._log is None:
            message = (
                f"table {self._table}: scan.normalize=state keeps the rows that a stream has read from a log, and this "
                "table has none; its streams look pre-images up in the snapshots with scan.normalize=lookup, in which "
                "commits without change tracking count as read"
            )
            raise InvalidInputError(message)

    def _watch(self, chosen: UntrackedScan) -> UntrackedWatch | None:
        if chosen is UntrackedScan.IGNORE:
            return None
        return UntrackedWatch(table=self._table, file_store=self._file_store, on_untracked=chosen)

    def _chosen(self, choices: type[_Choice], given: str | None, default: _Choice) -> _Choice:
        try:
            return default if given is None else choices(given)
        except ValueError as error:
            message = f"table {self._table}: {_OPTIONS[choices]}={given} is none of {', '.join(choices)}"
            raise InvalidInputError(message) from error


def _refuse_no_position(table: str, position: object) -> None:
    if position is not None and not isinstance(position, StreamPosition):
        message = (
            f"table {table}: position is a {type(position).__name__}; give a StreamPosition, or "
            "StreamPosition.from_json(...) of one that was kept"
        )
        raise InvalidInputError(message)


_OPTIONS: Mapping[type[StrEnum], str] = {
    ScanNormalize: "scan.normalize",
    UntrackedScan: "scan.on-untracked",
    StartupMode: "log.scan",
}
