"""A snapshot's watermark follows the newest event time of the written rows, and never decreases."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog
from tests.support.fake_environment import fake_environment

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
NOON_MILLIS = int(NOON.timestamp() * 1000)


def visits(at: pa.DataType = pa.timestamp("us", "UTC"), delay: str = "5 SECOND", **options: str) -> DynamicTable:  # noqa: B008
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", at)])
    return MemoryCatalog(environment=fake_environment()).create_table(
        "web.visits", columns, primary_key=["id"], options={"bucket": "2", "watermark.at": delay, **options}
    )


def come(table: DynamicTable, *moments: object) -> None:
    rows = {
        "id": pa.array(range(len(moments)), pa.int64()),
        "at": pa.array(moments, table.arrow_schema.field("at").type),
    }
    table.append(pa.table(rows))


def marks(table: DynamicTable) -> list[int | None]:
    return [None if each is None else each - NOON_MILLIS for each in table.inspect.snapshots()["watermark"].to_pylist()]


@pytest.mark.parametrize("options", [{}, {"log.system": "none"}, {"log.consistency": "eventual"}], ids=str)
def test_it_follows_the_newest_event_at_a_distance_and_never_falls(options: dict[str, str]) -> None:
    table = visits(**options)

    come(table, None)
    table.maintenance.tier_log() if table.new_write().is_log_first else None
    come(table, NOON, NOON.replace(hour=11))
    table.maintenance.tier_log() if table.new_write().is_log_first else None
    come(table, NOON.replace(hour=10))
    table.maintenance.tier_log() if table.new_write().is_log_first else None
    table.compact()

    assert marks(table)[-3:] == [-5_000, -5_000, -5_000]
    assert marks(table)[0] is None
    assert table.describe()["watermark"].startswith("2026-11-22 11:59:55")


def test_it_is_that_of_all_tasks_of_a_commit() -> None:
    table = visits(**{"log.system": "none"})
    order = table.new_write().begin(commit_user="driver")
    messages = []
    for task, hour in enumerate((9, 13, 8)):
        write = table.new_write().open_task(order, task_index=task)
        write.write(pa.table({"id": [task], "at": pa.array([NOON.replace(hour=hour)], pa.timestamp("us", "UTC"))}))
        messages.append(write.prepare_commit())
    table.new_write().commit(order, messages, 1)

    assert marks(table) == [3_600_000 - 5_000]


@pytest.mark.parametrize(
    ("kind", "moment", "delay", "mark"),
    [
        (pa.date32(), date(2026, 11, 23), "1 DAY", -12 * 3_600_000),
        (pa.timestamp("us"), NOON.replace(tzinfo=None), "0 SECOND", 0),
        (pa.timestamp("ms"), NOON.replace(tzinfo=None), "2 MINUTE", -120_000),
    ],
    ids=str,
)
def test_events_are_days_or_moments(kind: pa.DataType, moment: object, delay: str, mark: int) -> None:
    table = visits(kind, delay)

    come(table, moment)

    assert marks(table) == [mark]


@pytest.mark.parametrize("options", [{"watermark.at": "soon"}, {"watermark.id": "1 SECOND"}], ids=str)
def test_a_watermark_that_is_none_of_ours_is_no_reason_to_refuse_a_row(options: dict[str, str]) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", pa.timestamp("us"))])
    table = MemoryCatalog(environment=fake_environment()).create_table(
        "web.visits", columns, primary_key=["id"], options=options
    )

    come(table, NOON.replace(tzinfo=None))

    assert marks(table) == [None]
