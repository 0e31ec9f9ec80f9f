"""A drill: high concurrency in a real Airflow whose database is PostgreSQL. ``make drill``.

A backfill overwrites thirty partitions while a stream writes to the same table and compactions run; fifty tables are
maintained in one run.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pytest

from dynamic_table.sinks.sink_job import SinkJob
from local_airflow import LocalAirflow
from storage_lib import open_catalog
from storage_lib.table.sources.source_lag import source_lag
from tests.support.airflow_database import airflow_on_postgres
from tests.support.day_rows import DAY_ROWS_ALLOWED
from tests.support.processes import lives
from tests.support.spark_topics import committed_values, produce

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from local_postgres import LocalPostgres
    from storage_lib import Catalog, DynamicTable

HERE = Path(__file__).resolve().parent
ROWS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
DAYS = [f"2024-03-{day:02}" for day in range(1, 31)]
TABLES = 50
CONFLICT = "CommitConflictError"

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.drill,
    pytest.mark.integration,
    pytest.mark.kafka,
    pytest.mark.timeout(3600),
]


@pytest.fixture(scope="module")
def crowded(
    tmp_path_factory: pytest.TempPathFactory, kafka: LocalKafka, postgres: LocalPostgres
) -> Iterator[LocalAirflow]:
    """Start an Airflow on PostgreSQL, with the project's DAGs and those of the tests."""
    home = tmp_path_factory.mktemp("crowded")
    local = LocalAirflow(
        home=home,
        connection_extra={"warehouse": str(home / "warehouse"), "bootstrap_servers": kafka.bootstrap_servers},
        dag_folders=(HERE.parents[1] / "dags", HERE / "dags_for_tests"),
        environment={**airflow_on_postgres(postgres, "crowded"), **DAY_ROWS_ALLOWED},
    )
    local.start()
    try:
        yield local
    finally:
        started = local.process_ids()
        local.stop()
        for directory in home.glob("dynamic_table_jobs/*/job-*"):
            SinkJob(directory).kill()
        assert not any(lives(pid) for pid in started), "stopping left a process behind"


@pytest.fixture(scope="module")
def catalog(crowded: LocalAirflow) -> Catalog:
    """Open its warehouse from this process."""
    extra = crowded.connection_extra
    return open_catalog(extra["warehouse"], {"log.kafka.bootstrap.servers": extra["bootstrap_servers"]})


class Shop:
    """Writes changes of two rows per day into a topic, in rounds, until it is stopped after a complete one."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sell)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _sell(self) -> None:
        while not self._end.is_set():
            self.round()
            self._end.wait(1)

    def round(self) -> None:
        """Write every key once, so that a round after the last overwrite restores the overwritten rows."""
        rows: list[dict[str, object]] = [{"day": day, "id": one} for day in DAYS for one in (1, 2)]
        changes: list[dict[str, object]] = [{"before": None, "after": row, "op": "c"} for row in rows]
        produce(self._servers, self._topic, *changes)
        self.rounds += 1


def test_a_backfill_of_thirty_days_beside_a_stream_and_compactions_loses_nothing(
    crowded: LocalAirflow, catalog: Catalog, kafka: LocalKafka
) -> None:
    rest, began = crowded.rest, time.monotonic()
    for dag_id in ("provision", "stream", "reprocess", "maintain", "lost_race_daily"):
        rest.wait_for_dag(dag_id)
    # Through its DAG, as users do: if two tasks emit a table's first event at the same moment, Airflow fails one.
    columns = "(day STRING, id BIGINT, PRIMARY KEY (day, id) NOT ENFORCED) PARTITIONED BY (day) WITH ('bucket' = '1')"
    made = {"table": "crowd.daily", "ddl": f"CREATE TABLE crowd.daily {columns}"}
    rest.run("provision", conf=made)
    table = catalog.load_table("crowd.daily")
    topic, servers = "crowd.changes", kafka.bootstrap_servers
    shop = Shop(servers, topic)
    shop.round()
    conf = {"table": "crowd.daily", "source_name": topic, "trigger_seconds": 2, "master": "local[1]"}
    stream = rest.trigger("stream", conf=conf)
    rest.wait_until(lambda: table.to_arrow().num_rows == 60, "the stream's first rows", timeout=300)

    with shop:
        form = {"table": "crowd.daily", "column": "day", "rows": "tests.support.day_rows:rows_of_day"}
        backfill = rest.backfill("reprocess", first=DAYS[0], last=DAYS[-1], conf=form, max_active_runs=4)
        full = {"tables": ["crowd.daily"], "full": True, "retain_last": 500}
        maintained = [rest.run("maintain", conf=full, timeout=900)]
        states = rest.wait_for_backfill("reprocess", backfill, timeout=1800)
        # Not earlier: in parallel with four overwrites it may have more commit conflicts than retries.
        raced = rest.trigger("lost_race_daily")
        raced_state = rest.wait("lost_race_daily", raced, timeout=900)
        maintained.append(rest.run("maintain", conf=full, timeout=900))
    shop.round()
    rest.wait_until(
        lambda: source_lag(table, topic, table.address.options) == 0, "the sink to get to the end", timeout=300
    )
    rest.mark("stream", stream, "stream_sink", "success")

    assert set(states.values()) == {"success"}
    assert len(states) == len(DAYS)
    assert raced_state == "success", rest.log("lost_race_daily", raced, "compact_table", try_number=1)
    assert [one["state"] for one in rest.tries("lost_race_daily", raced, "compact_table")][-1] == "success"
    assert CONFLICT in rest.log("lost_race_daily", raced, "compact_table", try_number=1)
    assert rest.wait("stream", stream) == "success"
    wanted = Counter((day, one) for day in DAYS for one in (1, 2, 100, 200))
    assert Counter(rows_of(table)) == wanted
    assert replayed(table) == {(day, one) for day in DAYS for one in (1, 2)}
    # In parallel with four overwrites, a compaction of thirty partitions keeps those that were not overwritten.
    tried = [rest.tries("maintain", run, "compact_table", map_index=0) for run in maintained]
    assert [attempts[-1]["state"] for attempts in tried] == ["success"] * 2
    print(f"30 days, {shop.rounds} rounds of 60 changes, {table.context.file_store.snapshots.latest_id()} snapshots, "
          f"{[len(attempts) for attempts in tried]} tries of compactions, {time.monotonic() - began:.0f} s; "
          f"{load(crowded)}")  # fmt: skip


def load(airflow: LocalAirflow) -> str:
    """Return the cost of the DAGs: seconds to parse each file, and CPU seconds of Airflow's processes."""
    dags = airflow.rest.pages("/dags", "dags")
    parsed = {dag["dag_id"]: round(dag["last_parse_duration"] or 0, 2) for dag in dags}
    pids = json.loads((airflow.home / "local_airflow.json").read_text())["pids"]
    busy = {name: cpu_seconds(pids[name]) for name in ("scheduler", "dag-processor", "triggerer", "api-server")}
    return f"parse seconds {parsed}, CPU seconds {busy}"


def cpu_seconds(session: int) -> float:
    """Return the CPU seconds of all running processes of a session and of their ended children."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return total / os.sysconf("SC_CLK_TCK")


def rows_of(table: DynamicTable) -> list[tuple[str, int]]:
    return [(row["day"], row["id"]) for row in table.to_arrow().to_pylist()]


def replayed(table: DynamicTable) -> set[tuple[str, int]]:
    """Return the rows that result from the log alone, which does not contain the backfill."""
    rows: set[tuple[str, int]] = set()
    for change in committed_values(table):
        row = change["before"] if change["op"] == "d" else change["after"]
        (rows.discard if change["op"] == "d" else rows.add)((row["day"], row["id"]))
    return rows


def test_fifty_tables_are_maintained_in_one_run(crowded: LocalAirflow, catalog: Catalog) -> None:
    rest = crowded.rest
    rest.wait_for_dag("maintain")
    names = [f"many.t{number:02}" for number in range(TABLES)]
    for name in names:
        table = catalog.create_table(
            name, ROWS, primary_key=["day", "id"], options={"log.system": "none", "bucket": "1"}
        )
        for one in (1, 2):
            table.append(pa.table({"day": ["a"], "id": [one]}, schema=ROWS))

    began = time.monotonic()
    run = rest.run(
        "maintain", conf={"tables": names, "full": True, "retain_last": 1, "older_than_hours": 0}, timeout=3000
    )

    took = time.monotonic() - began
    states = rest.task_states("maintain", run)
    assert Counter(states.values()) == {"success": 3 + 2 * TABLES}
    for name in names:
        table = catalog.load_table(name)
        assert (table.inspect.files().num_rows, table.inspect.snapshots().num_rows) == (1, 1), name
    print(f"{TABLES} tables compacted and expired by one run in {took:.0f} s, parallelism {crowded.parallelism}; "
          f"{load(crowded)}")  # fmt: skip


def test_what_changed_in_a_runs_interval_reads_the_same_at_a_retry_and_after_a_clear(
    crowded: LocalAirflow, catalog: Catalog
) -> None:
    rest, name = crowded.rest, "crowd.read"
    table = catalog.create_table(name, ROWS, primary_key=["day", "id"], options={"log.system": "none", "bucket": "1"})
    for one in (1, 2):
        table.append(pa.table({"day": ["a"], "id": [one]}, schema=ROWS))
    rest.wait_for_dag("read_interval")
    span = {"start": spelled(-3600), "end": spelled(0)}

    run = rest.trigger("read_interval", conf=span)
    rest.wait_until((crowded.home / "interval").exists, "the first try to have read", timeout=120)
    table.append(pa.table({"day": ["a"], "id": [3]}, schema=ROWS))
    (crowded.home / "interval_go").touch()
    assert rest.wait("read_interval", run) == "success"
    retried = rest.result("read_interval", run, "read")
    rest.clear("read_interval", run)
    rest.wait_until(lambda: rest.run_state("read_interval", run) != "success", "the clear", timeout=60)
    assert rest.wait("read_interval", run) == "success"

    assert len(rest.tries("read_interval", run, "read")) >= 3
    first: Any = json.loads((crowded.home / "interval").read_text())
    assert (first, retried, rest.result("read_interval", run, "read")) == ([1, 2], [1, 2], [1, 2])


def spelled(seconds: float) -> str:
    return (datetime.now(tz=UTC) + timedelta(seconds=seconds)).isoformat()
