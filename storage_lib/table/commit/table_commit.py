"""One commit over both stores: the snapshot decides, then the log transactions it names end.

    open      take the turn ─▶ end what the newest snapshot left open ─▶ repair the log ─▶ read the base snapshot
    tasks     write files and log records, flushed but open                            (TableWrite)
    commit 1  already there under this identity? ─▶ end its transactions, drop the new files, done
           2  create snapshot-N, naming offsets and transactions           ◀── VISIBLE, DURABLE, DECIDED
           3  end the transactions; what proves lost is published again at once
           4  give the turn back

A commit that fails before step 2 leaves nothing behind. One that dies after it is finished by the next ``open``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    LeaseLostError,
    SnapshotExpiredError,
    StorageError,
    UnavailableError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, CommitMessage, Committable
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.io.after_commit import after_commit
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.commit.log_repair import LogRepair, MissingChanges
from storage_lib.table.commit.reserved_partitions import ReservedPartitions
from storage_lib.table.protocol.log_part import BucketTransaction, LogPart
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourcesOf, as_they_were
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.turn import Turn
from storage_lib.table.protocol.write_order import TableCommitMessage, WriteOrder
from storage_lib.table.stream.log_places import offsets_told
from storage_lib.table.write.log_share import two_tasks_for_one_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory

_REPAIR_ATTEMPTS_MAX = 5


class TableCommit:
    """Opens and commits appends to one table; every writer of it goes through here.

    ``repair`` knows the log, and is None for a table without one. Appends need no lease where they commute (no key and
    no log). Where a table ``adds_up`` what is committed, a difference must be from its present content.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        repair: LogRepair | None,
        adds_up: bool = False,
        reserves: ReservedPartitions = ReservedPartitions.NONE,
    ) -> None:
        """``reserves``: of which partitions nobody else may have changed rows while a commit was written."""
        self._table = context.name
        self._environment = context.environment
        self._file_store = context.file_store
        self._repair = repair
        self._lease = context.lease
        self._bucket_count = len(context.schema.bucket_numbers)
        self._takes_turns = bool(context.schema.primary_keys) or context.log is not None
        self._adds_up = adds_up
        self._reserves = reserves

    def open(
        self, *, commit_user: str, tracked: bool, purpose: str = "write", is_difference: bool = False
    ) -> WriteOrder:
        """Start a commit: inside a turn where the table asks for one, with the log in order.

        What ``is_difference`` from the base's content always needs a turn: two such would not commute.

        Raises ``UnavailableError`` if the turn or the log can't be had, ``LogRepairError`` if the log can't be mended.
        """
        turn = None
        if self._takes_turns or is_difference:
            turn = self._take_turn(commit_user, purpose)
        try:
            self._file_store.check_layout(self._file_store.snapshots.latest())
            if turn is None:
                base = self._file_store.snapshots.latest_id()
            else:
                with self._lease.beating(turn):
                    base = self._put_log_in_order(turn)
        except BaseException:
            if turn is not None:
                self._lease.release(turn)
            raise
        return WriteOrder(
            commit_user=commit_user,
            tracked=tracked,
            base_snapshot_id=base,
            turn=turn,
            is_difference=is_difference,
        )

    def _take_turn(self, commit_user: str, purpose: str) -> Turn:
        holder = f"{commit_user}/{self._environment.new_name()}"
        return self._lease.acquire(holder=holder, commit_user=commit_user, purpose=purpose)

    @property
    def _appends_take_turns(self) -> bool:
        return self._takes_turns

    def open_based_on(self, snapshot_id: int | None, *, commit_user: str, tracked: bool) -> WriteOrder:
        """Start a commit of rows that were made of a snapshot's (0: of the empty table), or will be of the order's base
        (None): always inside a turn.

        Raises ``CommitConflictError`` if rows have come or gone since that snapshot; otherwise as ``open``.
        """
        order = self.open(
            commit_user=commit_user, tracked=tracked, purpose="change rows", is_difference=not self._appends_take_turns
        )
        try:
            if snapshot_id is not None:
                self._refuse_changes_between(snapshot_id, order.base_snapshot_id or 0)
        except BaseException:
            self.abort(order, [])
            raise
        return order

    def _refuse_changes_between(self, made_of: int, base: int) -> None:
        for each in range(made_of + 1, base + 1):
            try:
                kind = self._file_store.snapshots.load(each).commit_kind
            except SnapshotExpiredError:
                kind = CommitKind.APPEND
            if kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
                message = (
                    f"table {self._table}: snapshot {each} changed rows after snapshot {made_of}, which these changes "
                    "were made of; make them again of the newest snapshot"
                )
                raise CommitConflictError(message)

    def in_turn_for(self, order: WriteOrder, sources: SourcesOf) -> WriteOrder:  # noqa: ARG002  of the log that comes first
        """The order of rows that were read from ``sources``; a commit that can be taken back is refused at its end."""
        return order

    def committed(self, commit_user: str, commit_identifier: int, *, ascending: bool = False) -> Snapshot | None:
        """The snapshot of an earlier commit under this identity; its log transactions are ended on the way.

        ``ascending`` as ``WriteOrder.identifiers_ascend``.
        """
        if commit_identifier == BATCH_COMMIT_IDENTIFIER:
            return None
        snapshot = self._file_store.snapshots.find_commit(commit_user, commit_identifier, ascending=ascending)
        if snapshot is not None and self._repair is not None:
            part = LogPart.of_snapshot(snapshot)
            if part is not None and part.transactions:
                self._repair.finish(part)
        return snapshot

    def commit(
        self,
        order: WriteOrder,
        messages: Sequence[TableCommitMessage],
        commit_identifier: int,
        *,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        sources: SourcesOf | None = None,
    ) -> Snapshot | None:
        """Make the messages of all tasks one snapshot; the turn is given back whatever happens.

        Returns the snapshot, also of an earlier commit under the same identity; None if there was nothing to write.
        ``properties`` are added to the snapshot's; ``sources`` says up to where foreign sources are in the table then,
        and is worth a snapshot of its own. Raises ``CommitConflictError`` or ``LeaseLostError`` with everything undone,
        ``CommitOutcomeUnknownError`` with everything left in place.
        """
        transactions = tuple(each for message in messages for each in message.transactions)
        files = tuple(each for message in messages for each in message.files)
        with self.turn_of(order.turn):
            earlier = self.committed(order.commit_user, commit_identifier, ascending=order.identifiers_ascend)
            if earlier is not None:
                with after_commit(f"table {self._table}: deleting the files of a commit that was repeated"):
                    self.abort(order, messages, release=False, committed=earlier)
                return earlier
            if not files and not transactions and sources is None:
                return None
            try:
                self._refuse_shared_buckets(transactions)
                self._refuse_shared_assigners(messages)
                snapshot, part = self._create_snapshot(
                    order, files, transactions, commit_identifier, watermark, properties or {}, sources=sources
                )
            except CommitOutcomeUnknownError:
                raise
            except Exception:
                # Why the commit failed matters more than what could not be cleaned up after it.
                with suppress(StorageError):
                    self.abort(order, messages, release=False)
                raise
            self._finish_log(order, part)
        return snapshot

    def mark(self, order: WriteOrder) -> Snapshot:
        """Make an empty snapshot in the order's turn, so that nobody can commit any more who began before."""
        snapshot, _ = self._create_snapshot(order, (), (), BATCH_COMMIT_IDENTIFIER, None, {})
        return snapshot

    def abort(
        self,
        order: WriteOrder,
        messages: Sequence[TableCommitMessage],
        *,
        release: bool = True,
        committed: Snapshot | None = None,
    ) -> None:
        """Undo what tasks wrote: delete their files, abort their transactions.

        ``committed`` is the snapshot that the very same messages may have become before: its files stay.
        """
        try:
            files = [each for message in messages for each in message.files]
            self._file_store.abort(files, committed=committed)
            handles = tuple(each.handle for message in messages for each in message.transactions)
            if handles and self._repair is not None:
                self._repair.log.end_all(handles, commit=False)
        finally:
            if release and order.turn is not None:
                self._lease.release(order.turn)

    def carried_forward(self, previous: Snapshot | None, sources: SourcesOf = as_they_were) -> Mapping[str, str]:
        """Properties of a commit that the log does not hear of: the offsets stay what they were."""
        offsets = self._offsets_of(previous)
        if previous is None and self._repair is not None:
            offsets = LogOffsets()  # a branch may be published before the table has had a commit of its own
        return {
            **LogPart(tracked=False, offsets=offsets).to_properties(),
            **sources(self.source_offsets(previous)).to_properties(),
        }

    def first_needed(self) -> int | None:
        """The oldest snapshot that has to stay: what the log lacks, and up to where sources were read, is there.

        None for a table without a commit. Other writers don't carry on what ours say of sources.
        """
        latest = self._file_store.snapshots.latest()
        needed = None if self._repair is None else self._repair.first_needed()
        told = _newest_of_ours(self._file_store.snapshots, latest)
        if latest is None or told is None or not SourceOffsets.of_snapshot(told).positions:
            return needed
        return told.id if needed is None else min(needed, told.id)

    def source_offsets(self, snapshot: Snapshot | None, history: SnapshotHistory | None = None) -> SourceOffsets:
        """Up to where foreign sources are in a snapshot, of the table or of the branch with this ``history``."""
        told = _newest_of_ours(history or self._file_store.snapshots, snapshot)
        return SourceOffsets() if told is None else SourceOffsets.of_snapshot(told)

    @contextmanager
    def turn_of(self, turn: Turn | None) -> Iterator[None]:
        """Keep a turn while the body runs, and give it back."""
        try:
            with nullcontext() if turn is None else self._lease.beating(turn):
                yield
        finally:
            if turn is not None:
                # Not to be given back is no failure of the commit: the lease runs out by itself.
                with suppress(StorageError):
                    self._lease.release(turn)

    def _create_snapshot(
        self,
        order: WriteOrder,
        files: tuple[CommitMessage, ...],
        transactions: tuple[BucketTransaction, ...],
        commit_identifier: int,
        watermark: int | None,
        properties: Mapping[str, str],
        covers_from: Mapping[int, int] | None = None,
        reached: LogOffsets | None = None,
        sources: SourcesOf | None = None,
    ) -> tuple[Snapshot, LogPart]:
        """``reached``: up to where the log was read into ``files``, which are then upon the offsets of before."""
        part = LogPart(
            tracked=order.tracked,
            lease=None if order.turn is None else order.turn.number,
            transactions=transactions,
            covers_from=covers_from or {},
        )

        def properties_of(previous: Snapshot | None) -> Mapping[str, str]:
            read_up_to = (sources or as_they_were)(self.source_offsets(previous)).to_properties()
            if self._repair is None:
                return {**part.to_properties(), **read_up_to, **properties}
            offsets = self._offsets_of(previous) or LogOffsets()
            if reached is not None:
                offsets = offsets.in_log(reached.log_id).advanced_to(reached.next_offsets)
            elif transactions:
                written = {each.written.bucket: each.written.next_offset for each in transactions}
                offsets = offsets.in_log(self._repair.log.log_id()).advanced_to(written)
            return {
                **part.to_properties(),
                **LogPart(tracked=part.tracked, offsets=offsets).to_properties(),
                **read_up_to,
                **properties,
            }

        snapshot = self._file_store.commit.commit(
            Committable(
                commit_user=order.commit_user,
                commit_identifier=commit_identifier,
                messages=files,
                watermark=watermark,
            ),
            guard=self._guard(order, files),
            properties_of=properties_of,
            identifiers_ascend=order.identifiers_ascend,
            is_overwrite=order.overwrite is not None,
        )
        return snapshot, part

    def _guard(self, order: WriteOrder, files: Sequence[CommitMessage]) -> Callable[[Snapshot | None], None]:
        """Before a snapshot is created: is the turn still ours, and was no other turn's commit made in it?"""

        def guard(latest: Snapshot | None) -> None:
            self._refuse_moved_keys(order, files, latest)
            turn = order.turn
            if turn is None:
                return
            self._lease.check(turn)
            for snapshot_id in range((order.base_snapshot_id or 0) + 1, (0 if latest is None else latest.id) + 1):
                try:
                    snapshot = self._file_store.snapshots.load(snapshot_id)
                except SnapshotExpiredError as error:
                    message = (
                        f"table {self._table}: snapshot {snapshot_id} was made and expired while this commit was being "
                        "written, so it is not known whose turn it was. Nothing became visible; write again, and "
                        "keep more snapshots (expire_snapshots(retain_last=...)) if this recurs"
                    )
                    raise LeaseLostError(message) from error
                if order.is_difference and self._adds_up and snapshot.commit_kind is CommitKind.OVERWRITE:
                    message = (
                        f"table {self._table}: snapshot {snapshot_id} replaced rows after snapshot "
                        f"{order.base_snapshot_id}, from which this commit's difference was made, so rows would be "
                        "taken away twice. Nothing became visible; run it again"
                    )
                    raise CommitConflictError(message)
                between = LogPart.of_snapshot(snapshot)
                appended_by_stranger = between is None and snapshot.commit_kind is CommitKind.APPEND
                in_another_turn = between is not None and between.lease not in (None, turn.number)
                if appended_by_stranger or in_another_turn:
                    message = (
                        f"table {self._table}: snapshot {snapshot_id} was committed in another writer's turn after "
                        f"this commit started upon snapshot {order.base_snapshot_id}. Nothing became visible; "
                        "write again"
                    )
                    raise LeaseLostError(message)

        return guard

    def _finish_log(self, order: WriteOrder, part: LogPart) -> None:
        """End the transactions of a snapshot that is there. The commit has happened, whatever becomes of this."""
        if self._repair is None or not part.transactions:
            return
        # Where the log is out of reach, or the turn has gone to somebody else, the next opener finishes it.
        with after_commit(f"table {self._table}: ending the log's transactions"):
            lost = self._repair.finish(part)
            if lost and order.turn is not None:
                self._put_log_in_order(order.turn)

    def _put_log_in_order(self, turn: Turn) -> int | None:
        """Repair the log until nothing is missing; the newest snapshot for which that is known."""
        repair = self._repair
        if repair is None:
            return self._file_store.snapshots.latest_id()
        base, missing = repair.find()
        self._fence_previous_holder(turn)
        for _ in range(_REPAIR_ATTEMPTS_MAX):
            if not missing:
                return base
            self._publish(repair, turn, base, missing)
            # The repair's own transaction may have been lost like the one it repairs.
            base, missing = repair.find()
        message = (
            f"table {self._table}: its log could not be completed in {_REPAIR_ATTEMPTS_MAX} attempts, for every "
            "transaction was aborted after its snapshot. Raise log.transaction.timeout, look at the brokers' logs, "
            "and try again"
        )
        raise UnavailableError(message)

    def _fence_previous_holder(self, turn: Turn) -> None:
        """End the transactions that it may have died with, which would hold readers up until they time out."""
        if turn.taken_over and self._repair is not None:
            self._lease.check(turn)
            for slot in range(self._bucket_count):
                self._repair.log.begin(slot).abort()

    def _publish(self, repair: LogRepair, turn: Turn, base: int | None, missing: tuple[MissingChanges, ...]) -> None:
        order = WriteOrder(
            commit_user=f"log-repair-{self._environment.new_name()}",
            tracked=True,
            base_snapshot_id=base,
            turn=turn,
        )
        transactions: list[BucketTransaction] = []
        begun = []
        try:
            self._lease.check(turn)
            for each in missing:
                transaction = repair.log.begin(each.bucket)
                begun.append(transaction)
                for snapshot_id, rows, kinds in repair.changes_of(each):
                    transaction.write(each.bucket, rows, kinds, repairs=snapshot_id)
                transactions += [
                    BucketTransaction(handle=transaction.handle, written=written) for written in transaction.flush()
                ]
            _, part = self._create_snapshot(
                order,
                (),
                tuple(transactions),
                BATCH_COMMIT_IDENTIFIER,
                None,
                {},
                covers_from={each.bucket: each.covers_from for each in missing},
            )
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            for transaction in begun:
                transaction.abort()
            raise
        repair.finish(part)

    def _offsets_of(self, previous: Snapshot | None) -> LogOffsets | None:
        return offsets_told(self._file_store.snapshots, previous)

    def _refuse_moved_keys(self, order: WriteOrder, files: Sequence[CommitMessage], latest: Snapshot | None) -> None:
        """Dynamic buckets were found for the keys that the base has: a key that has come since would be there twice."""
        if self._reserves is ReservedPartitions.NONE:
            return
        partitions = {message.partition for message in files}
        for snapshot_id in range((order.base_snapshot_id or 0) + 1, (0 if latest is None else latest.id) + 1):
            try:
                snapshot = self._file_store.snapshots.load(snapshot_id)
                if snapshot.commit_kind not in (CommitKind.APPEND, CommitKind.OVERWRITE):
                    continue
                changed = {entry.partition for entry in self._file_store.scan.delta(snapshot)}
            except SnapshotExpiredError:
                changed = set(partitions)
            if changed & partitions or (changed and self._reserves is ReservedPartitions.ALL):
                message = (
                    f"table {self._table}: snapshot {snapshot_id} changed rows after snapshot "
                    f"{order.base_snapshot_id or 0}, whose keys this commit's rows were brought to dynamic buckets by. "
                    "Nothing became visible; run it again"
                )
                raise CommitConflictError(message)

    def _refuse_shared_assigners(self, messages: Sequence[TableCommitMessage]) -> None:
        told = [each for message in messages for each in message.assigners]
        if len(told) > len(set(told)):
            message = (
                f"table {self._table} has dynamic buckets, and {len([each for each in messages if each.assigners])} "
                "tasks brought rows of the same assigner to them, so that a new key could get into two buckets. "
                "Nothing became visible; write with write_dynamic_table or write_stream, which bring the rows of each "
                "assigner to one task, or with df.coalesce(1)"
            )
            raise InvalidInputError(message)

    def _refuse_shared_buckets(self, transactions: tuple[BucketTransaction, ...]) -> None:
        seen: set[int] = set()
        for each in transactions:
            if each.written.bucket in seen:
                raise two_tasks_for_one_bucket(self._table, each.written.bucket)
            seen.add(each.written.bucket)


def _newest_of_ours(history: SnapshotHistory, snapshot: Snapshot | None) -> Snapshot | None:
    """The newest snapshot up to ``snapshot`` that this library made: other writers drop what ours say."""
    earliest = None
    while snapshot is not None and LogPart.of_snapshot(snapshot) is None:
        earliest = (history.earliest_id() or 1) if earliest is None else earliest
        snapshot = history.load(snapshot.id - 1) if snapshot.id > earliest else None
    return snapshot
