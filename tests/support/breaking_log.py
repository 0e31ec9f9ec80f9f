"""Log that fails on request: crashes before it ends transactions, or loses them after their snapshot."""

from __future__ import annotations

from storage_lib.log_store.log_store import EndOutcome, LogStore, TransactionHandle
from tests.support.delegating_log import DelegatingLog
from tests.support.faulty_file_io import SimulatedCrash


class BreakingLog(DelegatingLog):
    """Delegates every call to ``delegate``, except for the faults that are switched on.

    ``dies_before_commit``: the process crashes when it is about to commit transactions. ``loses_next_commits``: that
    many commits find their transactions already aborted, as after a broker's timeout. ``forgets_next_commits``: that
    many commits are acknowledged without a marker in the topic, as by a broker that has just restarted.
    """

    def __init__(self, delegate: LogStore) -> None:
        super().__init__(delegate)
        self.dies_before_commit = False
        self.loses_next_commits = 0
        self.forgets_next_commits = 0

    def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
        if commit and self.dies_before_commit:
            raise SimulatedCrash
        if commit and handles and self.loses_next_commits:
            self.loses_next_commits -= 1
            self.delegate.end_all(handles, commit=False)
            return tuple(EndOutcome.FENCED for _ in handles)
        if commit and handles and self.forgets_next_commits:
            self.forgets_next_commits -= 1
            return tuple(EndOutcome.ENDED for _ in handles)
        return self.delegate.end_all(handles, commit=commit)
