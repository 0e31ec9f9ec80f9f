"""A drill: kill processes in the middle of every kind of operator, and act on their tasks, in a real Airflow.

``make drill``. After each fault the table is as without it: files equal the expected rows, each commit exists once,
and no process keeps running.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from local_airflow import LocalAirflow
from storage_lib import open_catalog
from storage_lib.errors import NotFoundError
from tests.support.airflow_database import airflow_on_postgres
from tests.support.day_rows import DAY_ROWS_ALLOWED
from tests.support.processes import lives

if TYPE_CHECKING:
    from local_postgres import LocalPostgres
    from storage_lib import Catalog, DynamicTable

HERE = Path(__file__).resolve().parent
DAG_ID = "held_operators"
ROWS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
FIRST = [("a", 1), ("a", 2), ("b", 1)]
SECOND = [("a", 3), ("b", 2)]
KINDS = ("compact", "tag", "branch", "publish", "drop", "dropped", "expire", "orphans", "made", "reprocess",
         "rollback", "validate")  # fmt: skip

pytestmark = [pytest.mark.airflow, pytest.mark.drill, pytest.mark.integration, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory, postgres: LocalPostgres) -> Iterator[LocalAirflow]:
    """Start a separate Airflow, parts of which are killed, with slots for all operators at once."""
    home = tmp_path_factory.mktemp("hurt")
    local = LocalAirflow(
        home=home,
        connection_extra={"warehouse": str(home / "warehouse"), "options": {"log.system": "none"}},
        dag_folders=(HERE / "dags_for_tests",),
        parallelism=len(KINDS) + 2,
        environment={
            **airflow_on_postgres(postgres, "hurt"),
            **DAY_ROWS_ALLOWED,
            # Detect the loss of a scheduler or triggerer within seconds instead of minutes.
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
        },
    )
    local.start()
    local.rest.wait_for_dag(DAG_ID)
    try:
        yield local
    finally:
        started = local.process_ids()
        local.stop()
        assert not any(lives(pid) for pid in started), "stopping left a process behind"


@pytest.fixture
def catalog(hurt: LocalAirflow) -> Catalog:
    """Open its warehouse from this process."""
    return open_catalog(hurt.connection_extra["warehouse"], hurt.connection_extra["options"])


def prepare(catalog: Catalog, name: str) -> None:
    """Create a table of two commits for each kind, except for tables that the operator itself creates."""
    for kind in KINDS:
        if kind == "made":
            continue
        table = catalog.create_table(f"{name}.{kind}", ROWS, primary_key=["day", "id"], partition_by=["day"])
        for rows in (FIRST, SECOND):
            table.append(as_arrow(rows))
        if kind == "publish":
            table.branches.create("written")
            table.branches.open("written").append(as_arrow([("c", 1)]))
        if kind == "orphans":
            (Path(table.location) / "day=a" / "bucket-0" / "data-left-behind-0.parquet").write_bytes(b"left")


def as_arrow(rows: list[tuple[str, int]]) -> pa.Table:
    return pa.table({"day": [day for day, _ in rows], "id": [one for _, one in rows]}, schema=ROWS)


def rows_of(table: DynamicTable, **arguments: Any) -> list[tuple[str, int]]:
    return sorted((row["day"], row["id"]) for row in table.to_arrow(**arguments).to_pylist())


def check(catalog: Catalog, name: str) -> None:
    """Check that each operator has taken effect on its table exactly once."""
    everything = sorted(FIRST + SECOND)
    wanted = {
        "compact": everything,
        "tag": everything,
        "branch": everything,
        "publish": sorted([*everything, ("c", 1)]),
        "drop": [("b", 1), ("b", 2)],
        "expire": everything,
        "orphans": everything,
        "made": [],
        "reprocess": [("a", 100), ("a", 200), ("b", 1), ("b", 2)],
        "rollback": sorted(FIRST),
        "validate": everything,
    }
    for kind, rows in wanted.items():
        table = catalog.load_table(f"{name}.{kind}")
        assert rows_of(table) == rows, f"{name}.{kind}"
        commits = (table.context.file_store.snapshots.latest_id() or 0) - 2
        once = kind in ("compact", "publish", "drop", "reprocess", "rollback")
        assert commits == int(once) or kind == "made", f"{name}.{kind} has {commits} commits of its operator"
    assert [tag.name for tag in catalog.load_table(f"{name}.tag").tags.list()] == ["kept"]
    assert "audit" in catalog.load_table(f"{name}.branch").branches.list()
    assert "written" not in catalog.load_table(f"{name}.publish").branches.list()
    assert catalog.load_table(f"{name}.expire").inspect.snapshots().num_rows == 1
    assert not list(Path(catalog.load_table(f"{name}.orphans").location).rglob("*left-behind*"))
    with pytest.raises(NotFoundError):
        catalog.load_table(f"{name}.dropped")


class Round:
    """One run of the DAG, each of its tasks blocked at ``point``."""

    def __init__(self, airflow: LocalAirflow, catalog: Catalog, name: str, point: str) -> None:
        self.airflow, self.name, self._held = airflow, name, airflow.home / "held"
        prepare(catalog, name)
        (self._held / "go").unlink(missing_ok=True)
        self.run = airflow.rest.trigger(DAG_ID, conf={"point": point, "round": name})
        paths = [self._held / f"{name}.{kind}" for kind in KINDS]
        airflow.rest.wait_until(
            lambda: all(path.exists() and path.read_text() for path in paths),
            f"all operators of {name} to block",
            timeout=400,
        )
        self.pids = [int(path.read_text()) for path in paths]

    def go(self) -> None:
        """Let the tasks continue."""
        (self._held / "go").touch()

    def nothing_runs(self) -> None:
        """Wait until none of its processes is left."""
        self.airflow.rest.wait_until(lambda: not any(lives(pid) for pid in self.pids), "its processes", timeout=120)


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("victim", ["tasks", "triggerer", "scheduler"])
def test_whatever_is_killed_in_the_middle_of_an_operator_its_work_is_done_once(
    hurt: LocalAirflow, catalog: Catalog, victim: str, point: str
) -> None:
    standing = Round(hurt, catalog, f"{victim}_{point}", point)

    if victim == "tasks":
        for pid in standing.pids:
            os.kill(pid, signal.SIGKILL)
    else:
        hurt.kill(victim)
        hurt.restart(victim)
    standing.go()

    state = hurt.rest.wait(DAG_ID, standing.run, timeout=600)
    hurt.rest.check_success(DAG_ID, standing.run, state)
    standing.nothing_runs()
    check(catalog, standing.name)
    if victim == "tasks":
        assert all(len(hurt.rest.tries(DAG_ID, standing.run, kind)) == 2 for kind in KINDS)


def test_tasks_that_are_cleared_while_they_run_do_their_work_once(hurt: LocalAirflow, catalog: Catalog) -> None:
    standing = Round(hurt, catalog, "cleared", "before")

    hurt.rest.clear(DAG_ID, standing.run)
    standing.nothing_runs()
    standing.go()

    state = hurt.rest.wait(DAG_ID, standing.run, timeout=600)
    hurt.rest.check_success(DAG_ID, standing.run, state)
    check(catalog, standing.name)


@pytest.mark.parametrize("act", ["marked", "deleted"])
def test_tasks_that_are_ended_by_hand_leave_nothing_running_and_do_nothing_any_more(
    hurt: LocalAirflow, catalog: Catalog, act: str
) -> None:
    standing = Round(hurt, catalog, act, "before")

    if act == "deleted":
        # Airflow does not delete a running run.
        hurt.rest.patch(f"/dags/{DAG_ID}/dagRuns/{standing.run.replace('+', '%2B')}", {"state": "failed"})
        hurt.rest.delete_run(DAG_ID, standing.run)
    else:
        for kind in KINDS:
            hurt.rest.mark(DAG_ID, standing.run, kind, "success")
    standing.nothing_runs()
    standing.go()

    for kind in KINDS:
        if kind in ("made", "branch"):
            continue
        table = catalog.load_table(f"{act}.{kind}")
        assert rows_of(table) == sorted(FIRST + SECOND), kind
        assert table.context.file_store.snapshots.latest_id() == 2, kind
    # The same work can still be done afterwards.
    again = hurt.rest.run(DAG_ID, conf={"point": "none", "round": act}, timeout=600)
    assert set(hurt.rest.task_states(DAG_ID, again).values()) == {"success"}
    check(catalog, act)
