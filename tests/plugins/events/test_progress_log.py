"""Long operations of a task log their progress at intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table.events import progress_log
from dynamic_table.events.progress_log import SECONDS_BETWEEN_LINES, progress_in_log
from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.remove_orphan_files import RemoveOrphanFilesOperator
from dynamic_table.operators.validate_table import ValidateTableOperator
from storage_lib import open_catalog
from storage_lib.progress.operation import operation
from tests.support.fake_environment import FakeClock
from tests.support.task_context import task_context

if TYPE_CHECKING:
    from storage_lib import DynamicTable


class Lines:
    """Records the lines of a task's log."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def info(self, template: str, *values: object) -> None:
        self.written.append(template % values)


def run(clock: FakeClock, name: str, *, steps: int, seconds_each: float) -> None:
    with operation(name, "shop.orders", total=steps, unit="buckets") as running:
        for _ in range(steps):
            clock.pass_time(seconds_each)
            running.advance()


def test_a_long_operation_writes_a_line_every_half_minute_and_one_at_its_end() -> None:
    clock, log = FakeClock(), Lines()

    with progress_in_log(log, monotonic=clock.monotonic):
        run(clock, "compact", steps=10, seconds_each=SECONDS_BETWEEN_LINES / 3)

    assert log.written == [
        "compact shop.orders: 3 of 10 buckets",
        "compact shop.orders: 6 of 10 buckets",
        "compact shop.orders: 9 of 10 buckets",
        "compact shop.orders: 10 of 10 buckets",
    ]


def test_short_operations_write_nothing_however_many_there_are() -> None:
    clock, log = FakeClock(), Lines()

    with progress_in_log(log, monotonic=clock.monotonic):
        run(clock, "overwrite", steps=3, seconds_each=SECONDS_BETWEEN_LINES)
        log.written.clear()
        for _ in range(5):
            run(clock, "compare", steps=2, seconds_each=SECONDS_BETWEEN_LINES / 3)

    assert log.written == []


@pytest.fixture
def orders(warehouse: Path) -> DynamicTable:
    """Create a table of two buckets with two files each."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    options = {"log.system": "none", "bucket": "2", "write-only": "true"}
    table = open_catalog(str(warehouse)).create_table("shop.orders", columns, primary_key=["id"], options=options)
    for _ in range(2):
        table.append(pa.table({"id": range(10)}, schema=columns))
    return table


UNIQUE = [{"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}}]


@pytest.mark.usefixtures("orders")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names
@pytest.mark.parametrize(
    ("operator", "arguments", "line"),
    [
        (CompactTableOperator, {}, "compact shop.orders: 1 of 2 buckets"),
        (RemoveOrphanFilesOperator, {"older_than_hours": 0}, "find orphans shop.orders: "),
        (ValidateTableOperator, {"expectations": UNIQUE}, "read shop.orders: 4 of 4 files"),
    ],
)
def test_an_operator_writes_its_progress_into_the_tasks_log(
    operator: type[Any],
    arguments: dict[str, Any],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress_log, "SECONDS_BETWEEN_LINES", 0.0)
    task = operator(task_id="long", table="shop.orders", **arguments)

    task.execute(task_context(task))

    assert line in capsys.readouterr().out
