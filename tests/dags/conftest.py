"""A temporary Airflow home for parsing DAG files, never the user's, and one real Airflow for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.own_airflow_home import own_airflow_home

# Before the first import of Airflow, which reads these variables once. Older versions load examples with any folder.
os.environ["AIRFLOW_HOME"] = own_airflow_home()
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")

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
# Planted secrets, which a local warehouse does not need: they must not leak, whatever a test lets Airflow do.
PLANTED = {
    "s3.secret-key": "planted-key-4711",
    "s3.session-token": "Endpoint=sb://x/;SharedAccessKey=planted-part-4712",
}
EVENTS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    """Start one Airflow for all tests, with the project's DAGs and those of the tests."""
    home = tmp_path_factory.mktemp("airflow")
    local = LocalAirflow(
        home=home,
        connection_extra={
            "warehouse": str(home / "warehouse"),
            "options": {"log.system": "none"},
            "secret_options": PLANTED,
        },
        dag_folders=(HERE.parents[1] / "dags", HERE / "dags_for_tests"),
        # Detect a killed triggerer, and take over its triggers, sooner than after the default half minute.
        environment={**DAY_ROWS_ALLOWED, "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15"},
    )
    local.start()
    _running.append(local)
    yield local
    end_airflow()


_running: list[LocalAirflow] = []


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop Airflow after the last test of this folder: an idle one takes a quarter of a core."""
    if nextitem is None or not nextitem.path.is_relative_to(HERE):
        end_airflow()


def end_airflow() -> None:
    """Stop Airflow, if it runs, and check that none of its processes remain."""
    while _running:
        local = _running.pop()
        started = local.process_ids()
        # The triggerer waits ten seconds for its child after that has ended, and longer with triggers of assets.
        local.stop(timeout=3)
        assert len(started) > len(("scheduler", "dag-processor", "api-server", "triggerer"))
        assert not any(lives(pid) for pid in started), "stopping left a process behind"
        for directory in (local.home / "dynamic_table_jobs").rglob("job-*"):
            SinkJob(directory).kill()


@pytest.fixture(scope="session")
def rest(airflow: LocalAirflow) -> AirflowRest:
    """Return the REST client of the shared Airflow."""
    return airflow.rest


@pytest.fixture(scope="session")
def catalog(airflow: LocalAirflow) -> Catalog:
    """Open the warehouse of Airflow's connection from this process."""
    return open_catalog(airflow.connection_extra["warehouse"], airflow.connection_extra["options"])


@pytest.fixture(scope="session")
def events(catalog: Catalog) -> DynamicTable:
    """Create a small table with two level-0 files to compact."""
    table = catalog.create_table("life.events", EVENTS, primary_key=["id"], if_not_exists=True)
    for text in ("old", "new"):
        table.append(pa.table({"id": [1, 2, 3], "text": [text] * 3}, schema=EVENTS))
    return table
