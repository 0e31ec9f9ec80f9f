"""The sink as a separate process: from an external topic into a table, monitored by its heartbeat."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.progress.sink_state import SinkState
from storage_lib.spark.stream.sink.sink_heartbeat import SinkHeartbeat, read_heartbeat
from storage_lib.spark.stream.sink.sink_spec import SinkSource, SinkSpec
from tests.support.shared_server import unique_name
from tests.support.spark_topics import produce

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark]


def test_a_sink_says_how_it_is_and_ends_cleanly_when_asked_to(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], bootstrap_servers: str, tmp_path: Path
) -> None:
    table = make_table(log=True)
    topic = f"cdc-{unique_name(tmp_path)}"
    rows = [{"id": key, "v": f"v{key}"} for key in range(5)]
    inserts: list[dict[str, object] | None] = [{"before": None, "after": row, "op": "c"} for row in rows]
    produce(bootstrap_servers, topic, *inserts)
    produce(bootstrap_servers, topic, {"before": rows[0], "after": None, "op": "d"})
    spec = SinkSpec(
        warehouse=table.address.warehouse,
        table=table.name,
        source=SinkSource(kind="debezium_json", name=topic, schema="id BIGINT, v STRING", options={"log.scan": "full"}),
        catalog_options=dict(table.address.options),
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path / "heartbeat.json"),
        stop_path=str(tmp_path / "stop"),
        master="local[2]",
        spark_conf=spark_conf,
    )

    with launch(spec, tmp_path) as sink:
        running = wait_for(spec, lambda beat: beat.row_count >= 6 or beat.state.is_final)
        assert running.state is SinkState.RUNNING, running.error
        assert running.pid == sink.pid
        sink.send_signal(signal.SIGTERM)
        assert sink.wait(240) == 0

    last = read_heartbeat(LocalFileIO(), spec.heartbeat_path)
    assert last is not None
    assert last.state is SinkState.STOPPED
    assert last.row_count == 6
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == {key: f"v{key}" for key in range(1, 5)}
    assert table.context.leases.holder() is None
    assert table.inspect.source_offsets(topic) == LogOffsets({0: 6})


def test_a_sink_that_can_not_start_says_why(tmp_path: Path) -> None:
    spec = SinkSpec(
        warehouse=str(tmp_path / "warehouse"),
        table="db.nothing",
        source=SinkSource(kind="dynamic_table", name="db.other"),
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path / "heartbeat.json"),
    )

    with launch(spec, tmp_path) as sink:
        assert sink.wait(240) == 1

    last = read_heartbeat(LocalFileIO(), spec.heartbeat_path)
    assert last is not None
    assert last.state is SinkState.FAILED
    assert last.error is not None
    assert last.error.startswith("NotFoundError: ")


def launch(spec: SinkSpec, directory: Path) -> subprocess.Popen[bytes]:
    path = directory / "spec.json"
    path.write_text(spec.to_json())
    command = [sys.executable, "-m", "storage_lib.spark.streaming_sink", "--spec", str(path)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def wait_for(spec: SinkSpec, ready: Callable[[SinkHeartbeat], bool], seconds: float = 240) -> SinkHeartbeat:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        beat = read_heartbeat(LocalFileIO(), spec.heartbeat_path)
        if beat is not None and ready(beat):
            return beat
        time.sleep(0.1)
    raise TimeoutError(f"the sink never got there: {beat}")
