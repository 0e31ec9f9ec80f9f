"""A run reads the commits of its interval, and reads the same again after later commits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jinja2.nativetypes
import pendulum
import pyarrow as pa
import pytest

from dynamic_table.airflow_plugin import DynamicTablePlugin
from dynamic_table.arguments.interval_changes import changes_in_interval, interval_changes, run_interval
from dynamic_table.operators.process_changes import ProcessChangesOperator
from storage_lib import (
    CommitOutcomeUnknownError,
    DynamicTable,
    InvalidInputError,
    SnapshotExpiredError,
    WarehouseCatalog,
)
from storage_lib.io.environment import Environment, new_uuid
from storage_lib.table.builders.read_builder import ReadBuilder
from tests.support.task_context import DictStore, announced, task_context

if TYPE_CHECKING:
    from airflow.sdk import Context

    from storage_lib.table.protocol.change_split import ChangeSplit

NOON = datetime(2024, 5, 14, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
COLUMNS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


class SetClock:
    """Clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = NOON

    def now_millis(self) -> int:
        return int(self.now.timestamp() * 1000)

    def monotonic(self) -> float:
        return self.now.timestamp()

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Replace the clock of every catalog that a hook opens."""
    clock = SetClock()
    monkeypatch.setattr(
        "storage_lib.catalog.warehouse.warehouse_catalog.system_environment",
        lambda file_io: Environment(file_io=file_io, clock=clock, new_name=new_uuid),
    )
    return clock


@pytest.fixture
def orders(warehouse: Path, clock: SetClock) -> DynamicTable:
    """Create tables with one commit before noon's hour (1), two in it (2 and 3), and one in the next (4)."""
    catalog = WarehouseCatalog(str(warehouse), {"log.system": "none"})
    for name in ("shop.orders", "shop.copy"):
        catalog.create_table(name, COLUMNS, primary_key=["day", "id"], partition_by=["day"])
    table = catalog.load_table("shop.orders")
    for minutes, day, id_ in ((-1, "a", 1), (0, "a", 2), (59, "b", 3), (60, "b", 4)):
        clock.now = NOON + timedelta(minutes=minutes)
        table.append(pa.table({"day": [day], "id": [id_]}, schema=COLUMNS))
    return table


def in_interval(context: Context, start: datetime | None = NOON, end: datetime | None = NOON + HOUR) -> Context:
    """Set a run's data interval, with times of Airflow's own type."""
    given = {"data_interval_start": start, "data_interval_end": end}
    moments = {name: pendulum.instance(moment) if moment else None for name, moment in given.items()}
    cast("dict[str, Any]", context).update(moments)
    return context


def ids(changes: pa.RecordBatchReader, factor: int = 1) -> list[int]:
    """Return the ids of the changes; DAGs refer to this function by name."""
    return sorted(factor * id_ for id_ in changes.read_all()["id"].to_pylist())


def rows(changes: pa.RecordBatchReader) -> pa.Table:
    return changes.read_all().select(["day", "id"])


def no_rows(changes: pa.RecordBatchReader) -> None:
    changes.read_all()


def text(changes: pa.RecordBatchReader) -> str:
    return str(changes.schema)


@pytest.fixture(autouse=True)
def _this_module_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    functions = SimpleNamespace(ids=ids, rows=rows, no_rows=no_rows, text=text)
    monkeypatch.setitem(sys.modules, "changes_for_tests", cast("Any", functions))


def processing(function: str, **named: Any) -> ProcessChangesOperator:
    return ProcessChangesOperator(
        task_id="process", table="shop.orders", process=f"changes_for_tests:{function}", **named
    )


@pytest.mark.usefixtures("orders")
def test_a_run_reads_the_commits_of_its_interval_and_no_others() -> None:
    task = processing("ids", process_kwargs={"factor": 10})

    result = task.execute(in_interval(task_context(task)))

    assert result == {
        "table": "shop.orders",
        "op": "process_changes",
        "changes_of": "shop.orders",
        "after_snapshot": 1,
        "up_to_snapshot": 3,
        "result": [20, 30],
    }


def test_neighbouring_intervals_read_every_commit_once(orders: DynamicTable) -> None:
    bounds = [NOON + n * HOUR / 2 for n in range(-1, 3)]

    read = [ids(changes_in_interval(orders, start, end).read()) for start, end in pairwise(bounds)]

    assert read == [[1], [2], [3]]


def test_a_retry_and_a_clear_read_the_same_although_more_was_committed_to_a_clock_that_went_back(
    orders: DynamicTable, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DictStore()
    task = processing("ids")
    first = task.execute(in_interval(task_context(task, store=store)))
    orders.append(pa.table({"day": ["c"], "id": [5]}, schema=COLUMNS))
    # Resolving again would now return other snapshots.
    monkeypatch.setattr("storage_lib.table.builders.read_builder.ReadBuilder.snapshots_between", lambda *_: (0, 5))

    again = task.execute(in_interval(task_context(task, store=store)))
    cleared = task.execute(in_interval(task_context(task, store=store, max_tries=9)))
    other_run = task.execute(in_interval(task_context(task, store=DictStore())))
    assert [key.partition("/")[0] for key in store.lasting] == ["interval_changes"]

    assert again == cleared == first
    assert other_run["result"] == [1, 2, 3, 4, 5]
    assert clock.now == NOON + HOUR


@pytest.mark.usefixtures("orders")
def test_the_changes_of_one_partition_are_read_from_its_files_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    task = processing("ids", partition={"day": "b"})
    read: list[ChangeSplit] = []
    whole = ReadBuilder.read_changes

    def read_changes(builder: ReadBuilder, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        read.append(split)
        return whole(builder, split)

    monkeypatch.setattr(ReadBuilder, "read_changes", read_changes)

    assert task.execute(in_interval(task_context(task)))["result"] == [3]
    assert len(read) == 1


@pytest.mark.usefixtures("orders")
def test_a_partition_without_columns_is_not_the_whole_table() -> None:
    task = processing("ids", partition={})

    with pytest.raises(InvalidInputError, match="A partition is a mapping like"):
        task.execute(in_interval(task_context(task)))


def test_a_partitioned_run_reads_from_its_partition_date_on(orders: DynamicTable) -> None:
    context = task_context(task := processing("ids", partition_hours=0.5))
    cast("dict[str, Any]", context).update(partition_date=pendulum.instance(NOON), partition_key="2024-05-14T12")

    assert task.execute(context)["result"] == [2]
    assert run_interval(context) == (NOON, NOON + timedelta(days=1))
    assert orders.context.file_store.snapshots.latest_id() == 4


@pytest.mark.usefixtures("orders")
def test_a_named_interval_is_read_instead_of_the_runs() -> None:
    task = processing("ids", start="2024-05-14T11:00:00+00:00", end=NOON)

    assert task.execute(in_interval(task_context(task)))["result"] == [1]


@pytest.mark.parametrize("end", [NOON - HOUR, "yesterday"])
@pytest.mark.usefixtures("orders")
def test_a_named_interval_that_is_none_is_refused(end: Any) -> None:
    task = processing("ids", start=NOON, end=end)

    with pytest.raises(InvalidInputError, match=r"ends before it starts|a time with its zone"):
        task.execute(task_context(task))


@pytest.mark.usefixtures("orders")
def test_rows_made_of_the_changes_are_appended_once_and_announced() -> None:
    store = DictStore()
    task = processing("rows", into="shop.copy")
    context = in_interval(task_context(task, store=store))

    result = task.execute(context)

    assert (result["table"], result["version"], result["rows"]) == ("shop.copy", 1, 2)
    assert [(event["uri"], event["version"]) for event in announced(context)] == [("dynamic-table://shop/copy", 1)]
    copy = task.hook.load_table("shop.copy")
    assert sorted(copy.to_arrow()["id"].to_pylist()) == [2, 3]


@pytest.mark.usefixtures("orders")
def test_a_try_whose_answer_was_lost_finds_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    store = DictStore()
    task = processing("rows", into="shop.copy")
    whole, answers = DynamicTable.append, iter([True, False])

    def append(table: DynamicTable, given: pa.Table, **named: Any) -> Any:
        snapshot = whole(table, given, **named)
        if next(answers):
            message = "nobody knows"
            raise CommitOutcomeUnknownError(message)
        return snapshot

    monkeypatch.setattr(DynamicTable, "append", append)
    with pytest.raises(CommitOutcomeUnknownError):
        task.execute(in_interval(task_context(task, store=store)))

    result = task.execute(in_interval(task_context(task, store=store)))

    assert result["version"] == task.hook.load_table("shop.copy").context.file_store.snapshots.latest_id() == 1


def test_nothing_returned_is_nothing_appended_and_something_else_is_refused(orders: DynamicTable) -> None:
    nothing, wrong = processing("no_rows", into="shop.copy"), processing("text", into="shop.copy")

    assert nothing.execute(in_interval(task_context(nothing)))["version"] is None
    with pytest.raises(InvalidInputError, match="returned a str"):
        wrong.execute(in_interval(task_context(wrong)))
    assert orders.context.file_store.snapshots.latest_id() == 4


def test_an_interval_that_has_just_ended_is_waited_for_and_one_that_goes_on_is_refused(
    orders: DynamicTable, clock: SetClock
) -> None:
    clock.now = NOON + 2 * HOUR + timedelta(seconds=1)

    assert changes_in_interval(orders, NOON + HOUR, NOON + 2 * HOUR).end_snapshot_id == 4
    assert clock.now == NOON + 2 * HOUR + timedelta(seconds=5)
    with pytest.raises(InvalidInputError, match="is not over"):
        changes_in_interval(orders, NOON, NOON + 3 * HOUR)


@pytest.mark.parametrize(
    ("start", "end", "said"), [(None, None, "no data interval"), (NOON, NOON, "CronDataIntervalTimetable")]
)
def test_a_run_without_an_interval_is_told_what_to_do(start: Any, end: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        run_interval(in_interval(task_context(processing("ids")), start, end))


def test_snapshots_that_were_expired_are_refused(orders: DynamicTable) -> None:
    orders.maintenance.expire_snapshots(retain_last=1)

    with pytest.raises(SnapshotExpiredError):
        changes_in_interval(orders, NOON, NOON + HOUR)


def test_an_interval_without_commits_is_empty(orders: DynamicTable) -> None:
    found = changes_in_interval(orders, NOON + timedelta(minutes=10), NOON + timedelta(minutes=20))

    assert found.is_empty
    assert found.read().read_all().num_rows == 0


@pytest.mark.usefixtures("orders")
def test_a_template_gets_the_range_for_spark(orders: DynamicTable) -> None:
    [macro] = DynamicTablePlugin.macros
    store = DictStore()
    context = in_interval(task_context(processing("ids"), store=store))
    names: dict[str, Any] = {**context, "changes": macro}

    plain = jinja2.Environment(autoescape=True).from_string("{{ changes('shop.orders').spark_range }}")
    native = jinja2.nativetypes.NativeEnvironment().from_string("{{ changes('shop.orders').spark_options }}")

    options: Any = native.render(names)
    assert (plain.render(names), options) == ("1,3", {"incremental-between": "1,3"})
    assert interval_changes(context, orders).spark_range == "1,3"
    assert len(store) == 1
