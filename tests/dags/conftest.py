"""Airflow's home while DAG files are parsed: thrown away, never the user's. And one real Airflow for all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before the first import of Airflow, which reads it once.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-home-"))

import pyarrow as pa
import pytest

from dynamic_table.sinks.sink_job import SinkJob
from local_airflow import LocalAirflow
from storage_lib import Catalog, DynamicTable, open_catalog
from tests.support.day_rows import DAY_ROWS_ALLOWED
from tests.support.processes import lives

if TYPE_CHECKING:
    from airflow_rest import AirflowRest

HERE = Path(__file__).resolve().parent
# Of no use to a warehouse on this machine: whatever any test lets Airflow do, they have to stay where they are.
PLANTED = {
    "s3.secret-key": "planted-key-4711",
    "s3.session-token": "Endpoint=sb://x/;SharedAccessKey=planted-part-4712",
}
EVENTS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the drills unless somebody asks for them by their mark."""
    if "drill" in config.getoption("markexpr"):
        return
    drills = [item for item in items if item.get_closest_marker("drill")]
    config.hook.pytest_deselected(items=drills)
    items[:] = [item for item in items if item not in drills]


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    """One Airflow for all tests, with the project's DAGs and those of the tests."""
    home = tmp_path_factory.mktemp("airflow")
    local = LocalAirflow(
        home=home,
        connection_extra={
            "warehouse": str(home / "warehouse"),
            "options": {"log.system": "none"},
            "secret_options": PLANTED,
        },
        dag_folders=(HERE.parents[1] / "dags", HERE / "dags_for_tests"),
        # A triggerer that was killed is missed, and its triggers are taken over, sooner than after half a minute.
        environment={**DAY_ROWS_ALLOWED, "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15"},
    )
    local.start()
    _running.append(local)
    yield local
    end_airflow()


_running: list[LocalAirflow] = []


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """An Airflow that nobody asks takes a quarter of a core: it ends with the last test of this folder."""
    if nextitem is None or not nextitem.path.is_relative_to(HERE):
        end_airflow()


def end_airflow() -> None:
    """Stop it, if it runs, and see that nothing of it is left."""
    while _running:
        local = _running.pop()
        started = local.process_ids()
        # Its triggerer would wait for its child for ten seconds after that has gone, and more with triggers of assets.
        local.stop(timeout=3)
        assert len(started) > len(("scheduler", "dag-processor", "api-server", "triggerer"))
        assert not any(lives(pid) for pid in started), "stopping left a process behind"
        for directory in local.home.glob("dynamic_table_jobs/*/job-*"):
            SinkJob(directory).kill()


@pytest.fixture(scope="session")
def rest(airflow: LocalAirflow) -> AirflowRest:
    """The way to ask it."""
    return airflow.rest


@pytest.fixture(scope="session")
def catalog(airflow: LocalAirflow) -> Catalog:
    """The warehouse that Airflow's connection names, seen from outside."""
    return open_catalog(airflow.connection_extra["warehouse"], airflow.connection_extra["options"])


@pytest.fixture(scope="session")
def events(catalog: Catalog) -> DynamicTable:
    """A small table with two level-0 files to compact."""
    table = catalog.create_table("life.events", EVENTS, primary_key=["id"], if_not_exists=True)
    for text in ("old", "new"):
        table.append(pa.table({"id": [1, 2, 3], "text": [text] * 3}, schema=EVENTS))
    return table
