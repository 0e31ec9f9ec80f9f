"""Two sinks of one checkpoint: one was taken for dead, and comes back. Every change is there once, in files and log."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.progress.sink_state import SinkState
from storage_lib.spark.stream.sink.sink_heartbeat import SinkHeartbeat, read_heartbeat
from storage_lib.spark.stream.sink.sink_spec import SinkSource, SinkSpec
from tests.spark.test_streaming_sink import launch, wait_for
from tests.support.shared_server import unique_name
from tests.support.spark_topics import committed_changes, produce

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.deep, pytest.mark.timeout(1800)]

WAVE = 20


@pytest.mark.parametrize("suspends", [True, False], ids=["suspended", "side by side"])
def test_two_sinks_double_and_lose_nothing(
    make_table: Callable[..., DynamicTable],
    spark_conf: dict[str, str],
    bootstrap_servers: str,
    tmp_path: Path,
    *,
    suspends: bool,
) -> None:
    # Without a key, a row that is written twice is there twice.
    table = make_table(log=True, primary_key=(), bucket=1, lease__timeout="5 s")
    topic = f"cdc-{unique_name(tmp_path)}"
    spec = SinkSpec(
        warehouse=table.address.warehouse,
        table=table.name,
        source=SinkSource(kind="debezium_json", name=topic, schema="id BIGINT, v STRING", options={"log.scan": "full"}),
        catalog_options=dict(table.address.options),
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path),
        master="local[2]",
        spark_conf=spark_conf,
    )
    specs = [
        replace(spec, heartbeat_path=str(tmp_path / name / "heartbeat.json"), stop_path=str(tmp_path / name / "stop"))
        for name in ("first", "second")
    ]
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    expected: list[tuple[str, int, str]] = []

    def bring(wave: int) -> None:
        rows = [{"id": wave * WAVE + key, "v": f"wave {wave}"} for key in range(WAVE)]
        changes: list[dict[str, object] | None] = [{"before": None, "after": row, "op": "c"} for row in rows]
        produce(bootstrap_servers, topic, *changes)
        expected.extend(("c", row["id"], row["v"]) for row in rows)  # type: ignore[misc]

    def shown() -> Counter[tuple[int, str]]:
        return Counter((row["id"], row["v"]) for row in table.refresh().to_arrow(columns=["id", "v"]).to_pylist())

    def has_ended_or_shows(count: int, beat: SinkHeartbeat) -> bool:
        return beat.state.is_final or len(shown()) >= count

    bring(0)
    first = launch(specs[0], tmp_path / "first")
    try:
        wait_for(specs[0], lambda beat: beat.row_count >= WAVE or beat.state.is_final)
        if suspends:
            os.killpg(first.pid, signal.SIGSTOP)
        bring(1)
        second = launch(specs[1], tmp_path / "second")
        try:
            if suspends:
                wait_for(specs[1], partial(has_ended_or_shows, 2 * WAVE))
                os.killpg(first.pid, signal.SIGCONT)
            for wave in range(2, 8):
                bring(wave)
                for each in specs:
                    # Either brings the wave, or has ended because the other one did.
                    wait_for(each, partial(has_ended_or_shows, (wave + 1) * WAVE))
            ended = [spec for spec in specs if state(spec).is_final]
            assert len(ended) < len(specs), [read_heartbeat(LocalFileIO(), each.heartbeat_path) for each in ended]
        finally:
            os.killpg(second.pid, signal.SIGTERM)
            second.wait(240)
    finally:
        os.killpg(first.pid, signal.SIGCONT)
        os.killpg(first.pid, signal.SIGTERM)
        first.wait(240)

    assert shown() == Counter((key, v) for _, key, v in expected)
    assert Counter(committed_changes(table)) == Counter(expected)


def state(spec: SinkSpec) -> SinkState:
    """Return the state in the newest heartbeat of a sink."""
    beat = read_heartbeat(LocalFileIO(), spec.heartbeat_path)
    assert beat is not None
    return beat.state
