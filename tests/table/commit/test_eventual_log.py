"""``log.consistency=eventual``: the log is the table, and ``tier_log`` writes its records to files, each once."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from storage_lib import (
    AddColumn,
    DynamicTable,
    InvalidInputError,
    LeaseLostError,
    LogOffsetsExpiredError,
    MemoryCatalog,
    StreamPosition,
    UnavailableError,
)
from storage_lib.file_store.commit_message import Committable
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.table.write.task_log_writer import FencedLogWriter
from tests.support.breaking_log import BreakingLog
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, NAME, applied, content, orders, reopened, rows, streamed

EVENTUAL = {"log.consistency": "eventual"}


def eventual(**options: str) -> DynamicTable:
    return orders(None, **EVENTUAL, **options)


def written(table: DynamicTable, *changes: str) -> None:
    """Write rows to the log only, as a stream that leaves them to the next tiering."""
    write_context = table.new_write().begin(commit_user="stream")
    with table.new_write().open_task(write_context) as write:
        write.write(rows(*changes))
        message = write.prepare_commit()
    assert table.new_write().commit(write_context, [message], 1, defers_tiering=True) is None


def physical_rows(table: DynamicTable) -> int:
    """Return the number of rows in files, all versions included, so that a duplicate record is detected."""
    return sum(table.inspect.files().column("record_count").to_pylist())


def assert_every_start_leads_to_the_same_table(table: DynamicTable) -> None:
    """Check that any snapshot plus the log from its offsets equals the log's content."""
    truth = applied(streamed(table))
    for snapshot_id in _starts(table):
        start = StreamPosition(snapshot_id=snapshot_id, split_index=0)
        assert applied(streamed(table, start)) == truth, f"started at snapshot {snapshot_id}"


def _starts(table: DynamicTable) -> list[int]:
    """Return all snapshots, except another engine's oldest ones if the snapshot with their offsets has expired."""
    snapshots = table.inspect.snapshots()
    told = pc.index(snapshots.column("log_offsets").is_valid(), value=True).as_py()
    ids: list[int] = snapshots.column("snapshot_id").to_pylist()
    return ids[max(told, 0) :]


def test_rows_are_in_the_log_at_once_and_in_the_files_after_tiering() -> None:
    table = eventual(bucket="2")
    written(table, "+I a 1 10", "+I a 2 20")

    assert applied(streamed(table)) == {"a 1 10", "a 2 20"}
    assert content(table) == set()

    written(table, "+U a 1 11", "-D a 2 20")
    snapshot = table.maintenance.tier_log()

    assert snapshot is not None
    assert content(table) == {"a 1 11"}
    assert table.maintenance.tier_log() is None
    assert_every_start_leads_to_the_same_table(table)


def test_a_stream_goes_from_the_snapshot_into_the_log_without_gap_and_without_double() -> None:
    table = eventual()
    written(table, "+I a 1 10", "+I a 2 20")
    table.maintenance.tier_log()
    written(table, "+U a 1 11")
    source = table.stream()

    first = source.poll()
    written(table, "+I a 3 30")
    second = source.poll()

    assert first is not None
    assert second is not None
    assert first.column("price").to_pylist() == [10, 20]
    assert list(zip(second.column("id").to_pylist(), second.column("price").to_pylist(), strict=True)) == [
        (1, 11),
        (3, 30),
    ]
    table.maintenance.tier_log()
    assert source.poll() is None


def test_a_batch_write_tiers_at_its_end_and_finds_its_own_repetition() -> None:
    table = eventual()

    first = table.append(rows("+I a 1 10"), commit_user="job", commit_identifier=7)
    again = table.append(rows("+I a 1 10"), commit_user="job", commit_identifier=7)

    assert first is not None
    assert again == first
    assert content(table) == {"a 1 10"}
    assert streamed(table) == ["+I a 1 10"]


def test_a_batch_write_has_its_snapshot_even_if_another_has_tiered_its_rows() -> None:
    table = eventual()
    write_context = table.new_write().begin(commit_user="job")
    with table.new_write().open_task(write_context) as write:
        write.write(rows("+I a 1 10"))
        message = write.prepare_commit()
    table.maintenance.tier_log()

    snapshot = table.new_write().commit(write_context, [message], 7)

    assert snapshot is not None
    assert snapshot.commit_user == "job"
    assert table.append(rows("+I a 1 10"), commit_user="job", commit_identifier=7) == snapshot
    assert physical_rows(table) == 1


def test_writers_to_the_log_wait_for_nobody() -> None:
    table = eventual(**{"lease.wait-timeout": "1 s"})
    lease = table.context.leases.acquire(holder="somebody", commit_user="somebody", purpose="write")

    written(table, "+I a 1 10")
    with pytest.raises(UnavailableError, match="somebody"):
        table.append(rows("+I a 2 20"))
    table.context.leases.release(lease)
    table.maintenance.tier_log()

    assert content(table) == {"a 1 10", "a 2 20"}


def test_files_are_compacted_after_tiering_unless_told_otherwise() -> None:
    table = eventual(**{"num-sorted-run.compaction-trigger": "2"})
    for price in range(3):
        written(table, f"+I a 1 {price}")
        table.maintenance.tier_log(compact=False)
    assert table.inspect.files().num_rows == 3

    written(table, "+I a 1 9")
    table.maintenance.tier_log()

    assert table.inspect.files().num_rows == 1
    assert content(table) == {"a 1 9"}
    assert_every_start_leads_to_the_same_table(table)


def test_an_untracked_write_comes_after_the_log_of_before_and_reaches_no_stream() -> None:
    table = eventual()
    written(table, "+I a 1 10")

    table.append(rows("+I a 1 11", "+I b 1 1"), change_tracking=False)
    assert content(table) == {"a 1 11", "b 1 1"}
    assert streamed(table) == ["+I a 1 10"]

    written(table, "+I a 1 12")
    table.maintenance.tier_log()
    assert content(table) == {"a 1 12", "b 1 1"}


@pytest.mark.parametrize("tracked", [True, False])
def test_an_overwrite_replaces_what_is_in_the_log_too_if_it_is_tracked(*, tracked: bool) -> None:
    table = eventual()
    table.append(rows("+I a 1 10", "+I a 2 20", "+I b 1 1"))
    written(table, "+I a 3 30")

    table.overwrite(rows("+I a 1 10", "+I a 2 21"), partition={"dt": "a"}, change_tracking=tracked)
    table.maintenance.tier_log()

    # An untracked overwrite replaces the files as of its start; records in the log are applied after it.
    late = set() if tracked else {"a 3 30"}
    assert content(table) == {"a 1 10", "a 2 21", "b 1 1"} | late
    if tracked:
        assert sorted(streamed(table)[4:]) == ["+U a 2 21", "-D a 3 30"]
        assert_every_start_leads_to_the_same_table(table)
    else:
        assert len(streamed(table)) == 4


def test_a_tracked_drop_of_a_partition_is_deletions_in_the_log() -> None:
    table = eventual()
    table.append(rows("+I a 1 10", "+I b 1 1"))

    table.maintenance.drop_partitions([{"dt": "a"}], change_tracking=True)

    assert content(table) == {"b 1 1"}
    assert applied(streamed(table)) == {"b 1 1"}
    table.maintenance.drop_partitions([{"dt": "b"}])
    assert content(table) == set()
    assert applied(streamed(table)) == {"b 1 1"}


def test_a_rollback_is_a_change_in_the_log() -> None:
    table = eventual()
    target = table.append(rows("+I a 1 10"))
    table.append(rows("+U a 1 11", "+I a 2 20"))
    assert target is not None

    table.rollback_to(snapshot_id=target.id)

    assert content(table) == {"a 1 10"} == applied(streamed(table))
    assert_every_start_leads_to_the_same_table(table)


def test_what_another_engine_appended_to_the_files_gets_into_the_log() -> None:
    table = eventual()
    table.append(rows("+I a 1 10", "+I a 2 20"))
    written(table, "+U a 1 11")
    _append_as_another_engine(table, rows("+I a 2 21", "+I a 3 30"))

    table.maintenance.tier_log()

    assert content(table) == {"a 1 11", "a 2 21", "a 3 30"} == applied(streamed(table))
    assert_every_start_leads_to_the_same_table(table)
    before = len(streamed(table))
    table.append(rows("+I a 4 40"))
    assert len(streamed(table)) == before + 1


def _append_as_another_engine(table: DynamicTable, new: pa.Table) -> None:
    batch = new.drop_columns(["_row_kind"]).to_batches()[0]
    batch = batch.cast(table.arrow_schema)
    write = table.context.file_store.new_write(table.context.file_store.snapshots.latest())
    for partition, bucket, indices in group_rows(batch, table.schema):
        write.write(partition, bucket, batch, pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows), indices)
    identifier = table.context.file_store.snapshots.latest_id() or 0
    committable = Committable(commit_user="flink", commit_identifier=identifier, messages=write.prepare_commit())
    table.context.file_store.commit.commit(committable)


def test_rows_of_a_newer_schema_keep_their_columns_whoever_tiers_them() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    old = orders(catalog, **EVENTUAL)
    written(old, "+I a 1 10")
    altered = old.alter(AddColumn("note", "STRING"))
    write_context = altered.new_write().begin(commit_user="stream")
    with altered.new_write().open_task(write_context) as write:
        write.write(rows("+I a 2 20").append_column("note", pa.array(["new"])))
        message = write.prepare_commit()
    altered.new_write().commit(write_context, [message], 1, defers_tiering=True)

    old.append(rows("+I a 3 30"))

    notes = catalog.load_table(NAME).to_arrow().to_pylist()
    assert sorted((row["id"], row["note"]) for row in notes) == [(1, None), (2, "new"), (3, None)]


def test_rows_of_a_schema_that_appears_while_the_log_is_tiered_keep_their_columns() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    old = orders(catalog, **EVENTUAL)
    written(old, "+I a 1 10")
    assert old.log is not None

    class Altered(type(old.log)):  # type: ignore[misc]
        """Lets another process add a column and write under it before the end of the log is read."""

        altered = False

        def latest_offsets(self) -> LogOffsets:
            if not self.altered:
                self.altered = True
                newer = catalog.load_table(NAME).alter(AddColumn("note", "STRING"))
                write_context = newer.new_write().begin(commit_user="stream")
                with newer.new_write().open_task(write_context) as write:
                    write.write(rows("+I a 2 20").append_column("note", pa.array(["new"])))
                    message = write.prepare_commit()
                newer.new_write().commit(write_context, [message], 1, defers_tiering=True)
            return super().latest_offsets()

    old.log.__class__ = Altered
    old.maintenance.tier_log()

    notes = catalog.load_table(NAME).to_arrow().to_pylist()
    assert sorted((row["id"], row["note"]) for row in notes) == [(1, None), (2, "new")]


def test_records_that_retention_took_before_they_were_tiered_are_told_of_and_skipped_on_demand() -> None:
    table = eventual()
    table.append(rows("+I a 1 10"))
    written(table, "+I a 2 20")
    written(table, "+I a 3 30")
    assert isinstance(table.log, MemoryLogStore)
    table.log.expire(LogOffsets({0: 2}))

    with pytest.raises(LogOffsetsExpiredError, match=r"log\.tier-interval"):
        table.maintenance.tier_log()
    assert content(table) == {"a 1 10"}

    table.maintenance.tier_log(skip_expired=True)
    assert content(table) == {"a 1 10", "a 3 30"}


def test_describe_tells_the_mode_and_how_far_the_files_are_behind() -> None:
    table = eventual()
    table.append(rows("+I a 1 10"))
    written(table, "+I a 2 20", "+I a 3 30")

    told = table.describe()
    assert told["log.consistency"] == "eventual"
    assert told["log records not yet in files"] == "2"
    assert orders().describe()["log.consistency"] == "transactional"


def test_describe_tells_of_the_files_while_the_log_does_not_answer() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    assert table.log is not None
    table.log.drop()

    told = table.describe()
    assert told["log end"].startswith("unknown: log ")
    assert "does not exist" in told["log end"]
    assert (told["rows (physical)"], told["log.system"], bool(told["log offsets"])) == ("1", "kafka", True)


@pytest.mark.parametrize(
    ("primary_key", "options", "remedy"),
    [
        ([], {}, "needs a primary key"),
        (["dt", "id"], {"log.changelog-mode": "all"}, r"log\.changelog-mode"),
        (["dt", "id"], {"log.system": "none"}, r"log\.kafka\.bootstrap\.servers"),
        (["dt", "id"], {"log.retention": "9 min"}, r"log\.retention=10 min"),
        (["dt", "id"], {"log.retention": "1 h", "log.tier-interval": "7 min"}, r"log\.retention=70 min"),
    ],
)
def test_create_refuses_what_eventual_can_not_keep(
    primary_key: list[str], options: dict[str, str], remedy: str
) -> None:
    catalog = MemoryCatalog(environment=fake_environment())

    with pytest.raises(InvalidInputError, match=remedy):
        catalog.create_table(NAME, COLUMNS, primary_key=primary_key, options={**EVENTUAL, **options})

    assert catalog.list_tables() == []


def test_tier_log_is_refused_where_files_and_log_are_written_together() -> None:
    with pytest.raises(InvalidInputError, match=r"log\.consistency=eventual"):
        orders().maintenance.tier_log()


LIFE = (
    ("+I a 1 10", "+I a 2 20"),
    ("+I b 1 1", "-D c 9 9"),
    ("+I a 3 30",),
)
"""Keys are unique, so the number of rows in files equals the number of tiered records."""

LOGGED = [change for step in LIFE for change in step]


def _live(table: DynamicTable) -> None:
    written(table, *LIFE[0])
    table.maintenance.tier_log(commit_user="tierer")
    written(table, *LIFE[1])
    table.append(rows(*LIFE[2]), commit_user="job", commit_identifier=1)


_ACTS = WRITES | {"log.append", "log.finish"}
"""Operations that change files or log; a crash before one is equivalent to a crash after the previous one."""


def _acts() -> int:
    files = MemoryFileIO()
    counted = FaultyFileIO(files)
    _live(reopened_in(counted, _table_on(files), names="sound"))
    return sum(operation in _ACTS for operation, _ in counted.calls)


def _table_on(files: MemoryFileIO) -> DynamicTable:
    return orders(MemoryCatalog(environment=fake_environment(files)), **EVENTUAL)


def test_a_crash_at_any_act_costs_no_row_and_puts_none_into_the_files_twice() -> None:
    acts = _acts()
    assert acts > 20
    for at in range(1, acts + 1):
        files = MemoryFileIO()
        sound = _table_on(files)
        faulty = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=at, operation=_ACTS))
        with suppress(SimulatedCrash):
            _live(reopened_in(faulty, sound, names="first"))

        survivor = reopened_in(FaultyFileIO(files), sound, names="second")
        survivor.maintenance.tier_log(commit_user="tierer")

        log = streamed(survivor)
        assert log == LOGGED[: len(log)], f"act {at}: the log is what was written so far, in order"
        assert content(survivor) == applied(log), f"act {at}"
        assert physical_rows(survivor) == len(log), f"act {at}: each record is in the files once"
        assert_every_start_leads_to_the_same_table(survivor)
        written(survivor, "+I z 1 1")
        survivor.maintenance.tier_log()
        assert content(survivor) == applied([*log, "+I z 1 1"]), f"act {at}"


def test_of_a_stalled_tierer_and_its_successor_only_one_wins() -> None:
    table = eventual()
    written(table, "+I a 1 10", "+I a 2 20")
    assert table.log is not None
    successor = reopened(table)

    class Overtaken(type(table.log)):  # type: ignore[misc]
        """Lets another process take over the lease and tier while this one reads the log."""

        overtaken = False

        def read(self, *args: object, **kwargs: object) -> object:
            if not self.overtaken:
                self.overtaken = True
                successor.maintenance.tier_log(commit_user="tierer")
            return super().read(*args, **kwargs)

    stalled_log = table.log
    stalled_log.__class__ = Overtaken
    stalled = reopened(table, stalled_log)

    with pytest.raises(LeaseLostError):
        stalled.maintenance.tier_log(commit_user="tierer")

    assert content(table) == {"a 1 10", "a 2 20"}
    assert physical_rows(table) == 2
    assert table.inspect.snapshots().num_rows == 1


def test_records_of_a_task_that_has_lost_its_lease_never_become_visible() -> None:
    table = eventual()
    assert table.log is not None
    leases = table.context.leases
    lease = leases.acquire(holder="stalled", commit_user="job", purpose="overwrite")
    writer = FencedLogWriter(
        table=table.name,
        log=table.log,
        leases=leases,
        lease=lease,
        only_task=True,
        clock=table.environment.clock,
        timeout_ms=60_000,
    )
    (batch,) = rows("+I a 1 10").drop_columns(["_row_kind"]).cast(table.arrow_schema).to_batches()
    writer.write(0, batch, pa.array([0], pa.int8()))
    leases.acquire(holder="heir", commit_user="job", purpose="overwrite")

    with pytest.raises(LeaseLostError):
        writer.flush()
    writer.abort()

    assert streamed(table) == []


def test_a_write_is_not_acknowledged_while_a_bucket_never_received_the_end_of_its_transaction() -> None:
    table = eventual()
    table.append(rows("+I a 1 10"))
    assert table.log is not None
    log = BreakingLog(table.log)
    log.forgets_next_commits = 1
    forgetful = reopened(table, log)

    with pytest.raises(LeaseLostError, match="write again"):
        forgetful.overwrite(rows("+I a 1 11"), partition={"dt": "a"})
    forgetful.overwrite(rows("+I a 1 11"), partition={"dt": "a"})

    assert content(table) == applied(streamed(table)) == {"a 1 11"}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_in_turn_the_log_the_files_and_a_model_agree(seed: int) -> None:
    chance = Random(seed)  # noqa: S311  no secret
    table = eventual(bucket="2")
    model: dict[tuple[str, str], str] = {}

    def some_rows(partitions: str) -> list[str]:
        keys = {(chance.choice(partitions), str(chance.randrange(4))) for _ in range(chance.randrange(1, 5))}
        return [f"{chance.choice(('+I', '+U', '-D'))} {dt} {id_} {chance.randrange(100)}" for dt, id_ in sorted(keys)]

    def take(changes: list[str]) -> None:
        for change in changes:
            kind, dt, id_, price = change.split()
            model.pop((dt, id_), None)
            if kind != "-D":
                model[dt, id_] = f"{dt} {id_} {price}"

    def log() -> None:
        take(changes := some_rows("ab"))
        written(table, *changes)

    def append() -> None:
        take(changes := some_rows("ab"))
        table.append(rows(*changes))

    def overwrite() -> None:
        new = [change.replace("-D", "+I") for change in some_rows("a")]
        take([f"-D {dt} {id_} 0" for dt, id_ in model if dt == "a"] + new)
        table.overwrite(rows(*new), partition={"dt": "a"})

    def foreign_append() -> None:
        take(new := [f"+I b {chance.randrange(6)} {chance.randrange(100)}"])
        # Its rows are ordered after the log so far, and before later records.
        table.maintenance.tier_log()
        _append_as_another_engine(table, rows(*new))
        table.maintenance.tier_log()

    acts = (
        log,
        log,
        log,
        append,
        overwrite,
        foreign_append,
        table.maintenance.tier_log,
        table.compact,
        table.maintenance.expire_snapshots,
    )
    for _ in range(25):
        chance.choice(acts)()
    table.maintenance.tier_log()

    assert content(table) == set(model.values()) == applied(streamed(table))
    assert_every_start_leads_to_the_same_table(table)
