"""Files that a streaming sink and its launcher exchange."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.progress.sink_state import SinkState
from storage_lib.spark.stream.sink.sink_check import check_of
from storage_lib.spark.stream.sink.sink_heartbeat import SinkHeartbeat, read_heartbeat
from storage_lib.spark.stream.sink.sink_spec import SinkCheck, SinkSource, SinkSpec

SPEC = SinkSpec(
    warehouse="/w",
    table="db.t",
    source=SinkSource(kind="debezium_json", name="topic", schema="id BIGINT", options={"log.scan": "latest"}),
    checkpoint_location="/c",
    heartbeat_path="/h.json",
    catalog_options={"log.kafka.bootstrap.servers": "localhost:1"},
    secret_options={"log.kafka.sasl.password": "KAFKA_PASSWORD"},
    select=("id", "upper(v) AS v"),
    max_rows_per_trigger=100,
)
HEARTBEAT = SinkHeartbeat(state=SinkState.RUNNING, pid=1, started_millis=2, written_millis=3, table="db.t", batch_id=4)


def test_a_sink_that_stopped_or_failed_says_nothing_more() -> None:
    assert [state for state in SinkState if state.is_final] == [SinkState.STOPPED, SinkState.FAILED]


def test_a_specification_survives_its_file() -> None:
    checked = replace(SPEC, check=SinkCheck(function="builtins:len", given=["a", "b"]))

    assert SinkSpec.from_json(SPEC.to_json()) == SPEC
    assert SinkSpec.from_json(checked.to_json()) == checked


def test_a_check_is_made_by_the_function_that_the_specification_names() -> None:
    made: Any = check_of(SinkCheck(function="builtins:len", given=["a", "b"]))

    assert check_of(None) is None
    assert made == 2
    for unknown in ("nowhere.at_all:check", "json:no_such_function", ""):
        with pytest.raises(InvalidInputError, match="can't be imported here"):
            check_of(SinkCheck(function=unknown, given=[]))


def test_secrets_come_from_the_environment_and_never_lie_in_the_file() -> None:
    options = SPEC.resolved_catalog_options({"KAFKA_PASSWORD": "hush"})

    assert options["log.kafka.sasl.password"] == "hush"
    assert "hush" not in SPEC.to_json()
    with pytest.raises(InvalidInputError, match="KAFKA_PASSWORD"):
        SPEC.resolved_catalog_options({})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "invalid sink specification: expected a JSON object, got a list"),
        (SPEC.to_json().replace('"warehouse"', '"warehose"'), "warehose"),
        (SPEC.to_json().replace('"debezium_json"', '"csv"'), "csv"),
        (SPEC.to_json().replace('"/c"', '""'), "checkpoint_location"),
        (SPEC.to_json().replace('"db.t"', '""'), "the sink's table is empty"),
        (SPEC.to_json().replace('"append"', '"upsert"'), "append, update, complete"),
        (SPEC.to_json().replace("100", "0"), "use 1 or more"),
        (SPEC.to_json().replace('"trigger_seconds": 0.0', '"trigger_seconds": -1'), "trigger_seconds is -1"),
        (json.dumps({**json.loads(SPEC.to_json()), "select": "id"}), "write a list"),
    ],
)
def test_a_wrong_specification_is_refused_before_anything_starts(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        SinkSpec.from_json(text)


def test_a_heartbeat_survives_its_file_and_a_later_release(tmp_path: Path) -> None:
    path = str(tmp_path / "heartbeat.json")
    assert read_heartbeat(LocalFileIO(), path) is None

    LocalFileIO().replace(path, HEARTBEAT.to_json().replace("{", '{"new": 1, ', 1).encode())

    assert read_heartbeat(LocalFileIO(), path) == HEARTBEAT


def test_a_heartbeat_that_is_none_says_so() -> None:
    with pytest.raises(CorruptFileError, match="invalid sink heartbeat"):
        SinkHeartbeat.from_json('{"state": "DANCING"}')


def test_reading_a_specification_needs_no_pyspark() -> None:
    code = "import storage_lib.spark as s, sys; s.SinkSpec; s.SinkHeartbeat; sys.exit('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
