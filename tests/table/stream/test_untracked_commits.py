"""``scan.on-untracked``: a stream does not silently skip a commit that the log does not contain."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

from storage_lib import (
    DynamicTable,
    InvalidInputError,
    SetOption,
    SnapshotExpiredError,
    StreamPosition,
    UntrackedCommitError,
)
from storage_lib.file_store.commit_message import Committable
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from tests.support.orders_table import orders, rows

LOG_SYSTEMS = pytest.mark.parametrize("log_system", ["kafka", "none"])
UNTRACKED: dict[str, Callable[[DynamicTable], object]] = {
    "append": lambda table: table.append(rows("+I b 7 70"), change_tracking=False),
    "overwrite": lambda table: table.overwrite(rows("+I b 7 70"), partition={"dt": "b"}, change_tracking=False),
    "drop": lambda table: table.maintenance.drop_partitions([{"dt": "b"}]),
    "rollback": lambda table: table.rollback_to(snapshot_id=1, change_tracking=False),
}
SILENT: dict[str, Callable[[DynamicTable], object]] = {
    "compaction": lambda table: table.compact(),
    "statistics": lambda table: table.maintenance.analyze(),
    "tracked append": lambda table: table.append(rows("+I b 7 70")),
}


def _table(log_system: str = "kafka", **options: str) -> DynamicTable:
    table = orders(None, **{"log.system": log_system, **options})
    table.append(rows("+I a 1 10"))
    table.append(rows("+I b 2 20"))
    return table


def _steps(table: DynamicTable, position: StreamPosition | None = None, *, on_untracked: str, **how: int) -> list[str]:
    """Return a stream's changes until it is up to date, and its error, if any. Positions survive a checkpoint."""
    told: list[str] = []
    source = table.stream(on_untracked=on_untracked)
    position = position or source.initial_position()
    try:
        while (end := source.latest_position(position, max_rows=how.get("max_rows"))) != position:
            for split in source.plan(position, end):
                for batch in source.read(split):
                    told += [f"{row['_row_kind']} {row['id']}" for row in batch.to_pylist()]
            position = StreamPosition.from_json(end.to_json())
    except UntrackedCommitError as error:
        told.append(str(error))
    return told


@LOG_SYSTEMS
@pytest.mark.parametrize("commit", UNTRACKED)
@pytest.mark.parametrize("max_rows", [None, 1])
def test_a_stream_that_should_fail_ends_after_what_came_before_the_untracked_commit(
    log_system: str, commit: str, max_rows: int | None
) -> None:
    table = _table(log_system)
    start = StreamPosition(snapshot_id=0, offsets=LogOffsets() if log_system == "kafka" else None)
    UNTRACKED[commit](table)
    table.append(rows("+I a 9 90"))

    limit = {} if max_rows is None else {"max_rows": max_rows}
    *told, last = _steps(table, start, on_untracked="fail", **limit)

    assert told == ["+I 1", "+I 2"]
    for word in ("shop.orders", "snapshot 3", "dt=b", "log.scan=full", "scan.on-untracked=warn or ignore"):
        assert word in last


@LOG_SYSTEMS
def test_a_stream_that_only_warns_says_it_once_and_goes_on(log_system: str, caplog: pytest.LogCaptureFixture) -> None:
    table = _table(log_system)
    source = table.stream(on_untracked="warn")
    position = source.initial_position()
    while (end := source.latest_position(position)) != position:
        position = end
    for commit in ("append", "overwrite", "drop"):
        UNTRACKED[commit](table)

    with caplog.at_level(logging.WARNING):
        position = source.latest_position(position)
        for _ in range(3):  # other processes, which know only the checkpoint
            source = table.stream(on_untracked="warn")
            position = source.latest_position(StreamPosition.from_json(position.to_json()))
    table.append(rows("+I a 9 90"))
    after = source.latest_position(position)

    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        f"table shop.orders: snapshot {snapshot}" for snapshot in (3, 4, 5)
    ]
    assert "OVERWRITE" in caplog.text
    assert sum(batch.num_rows for split in source.plan(position, after) for batch in source.read(split)) == 1


@LOG_SYSTEMS
@pytest.mark.parametrize("commit", SILENT)
def test_nothing_is_said_of_commits_that_are_told_or_change_nothing(
    log_system: str, commit: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = _table(log_system)
    source = table.stream(on_untracked="fail")
    source.poll()
    SILENT[commit](table)
    table.append(rows("+I a 9 90"))

    batch = source.poll()

    assert batch is not None
    assert batch.column("id").to_pylist()[-1] == 9
    assert not caplog.records


@LOG_SYSTEMS
def test_what_lies_before_the_start_of_a_stream_does_not_concern_it(log_system: str) -> None:
    table = _table(log_system)
    UNTRACKED["drop"](table)

    for startup in ("full", "latest"):
        source = table.stream(startup=startup, on_untracked="fail")
        source.poll()
        table.append(rows("+I a 9 90"))
        batch = source.poll()
        assert batch is not None
        assert batch.column("id").to_pylist() == [9]


def test_a_stream_that_ignores_looks_at_no_snapshot_and_remembers_none() -> None:
    table = _table()
    source = table.stream()
    source.poll()
    UNTRACKED["drop"](table)
    table.append(rows("+I a 9 90"))
    source.poll()

    assert source.position is not None
    assert "watched" not in source.position.to_json()
    assert table.stream(position=source.position, on_untracked="fail").poll() is None, "it stands behind the drop"


@pytest.mark.parametrize("has_read", [0, 1, 2])
def test_a_position_from_before_is_watched_from_where_it_stands(has_read: int) -> None:
    table = _table()
    UNTRACKED["overwrite"](table)
    part = SnapshotLogProperties.of_snapshot(table.context.file_store.snapshots.load(max(has_read, 1)))
    assert part is not None
    assert part.offsets is not None
    old = StreamPosition(snapshot_id=0, offsets=part.offsets if has_read else LogOffsets())
    table.compact()
    table.append(rows("+I a 9 90"))
    UNTRACKED["append"](table)

    *told, last = _steps(table, old, on_untracked="fail")

    assert told == ["+I 1", "+I 2"][has_read:]
    assert "snapshot 3" in last


@LOG_SYSTEMS
def test_the_overwrite_of_another_engine_is_told_and_its_append_is_none(log_system: str) -> None:
    table = _table(log_system)
    source = table.stream(on_untracked="fail")
    source.poll()
    _commit_as_another_engine(table, "+I b 7 70", is_overwrite=False)
    table.append(rows("+I a 9 90"))
    batch = source.poll()
    assert batch is not None
    assert batch.column("id").to_pylist() == [7, 9]
    _commit_as_another_engine(table, "+I b 8 80", is_overwrite=True)

    with pytest.raises(UntrackedCommitError, match="OVERWRITE"):
        source.poll()


def _commit_as_another_engine(table: DynamicTable, change: str, *, is_overwrite: bool) -> None:
    """Commit without this library's snapshot properties."""
    write = table.context.file_store.new_write(table.context.file_store.snapshots.latest())
    batch = rows(change).select(table.arrow_schema.names).cast(table.arrow_schema).to_batches()[0]
    for partition, bucket, indices in group_rows(batch, table.schema):
        write.write(partition, bucket, batch.take(pa.array(indices)), pa.array([0], pa.int8()))
    committable = Committable(commit_user="flink", commit_identifier=int(is_overwrite), messages=write.prepare_commit())
    table.context.file_store.commit.commit(committable, is_overwrite=is_overwrite)


def test_two_readers_of_one_table_each_do_as_they_are_told() -> None:
    table = _table().alter(SetOption("scan.on-untracked", "fail"))
    strict, lenient = table.stream(), table.stream(on_untracked="ignore")
    for source in (strict, lenient):
        source.poll()
    UNTRACKED["append"](table)

    with pytest.raises(UntrackedCommitError, match="an untracked APPEND"):
        strict.poll()
    table.append(rows("+I a 9 90"))
    batch = lenient.poll()
    assert batch is not None
    assert batch.column("id").to_pylist() == [9]
    with pytest.raises(InvalidInputError, match="shout is none of ignore, warn, fail"):
        table.stream(on_untracked="shout")


def test_whether_something_was_missed_is_not_known_once_snapshots_are_expired(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = _table(**{"write-only": "true"})
    strict, warned = table.stream(on_untracked="fail"), table.stream(on_untracked="warn")
    for source in (strict, warned):
        source.poll()
    UNTRACKED["append"](table)
    for number in range(4):
        table.append(rows(f"+I a {number} 1"))
    table.maintenance.expire_snapshots(retain_last=2)

    with pytest.raises(SnapshotExpiredError, match=r"snapshots 3 to 5 .*table\.consumers"):
        strict.poll()
    batch = warned.poll()
    assert batch is not None
    assert batch.num_rows == 4
    assert warned.poll() is None
    assert [record.getMessage()[:40] for record in caplog.records] == ["table shop.orders: snapshots 3 to 5 were"]


def test_an_eventual_table_tells_it_too() -> None:
    table = _table(**{"log.consistency": "eventual"})
    source = table.stream(on_untracked="fail")
    source.poll()
    UNTRACKED["overwrite"](table)
    table.append(rows("+I a 9 90"))

    with pytest.raises(UntrackedCommitError, match="OVERWRITE"):
        source.poll()
