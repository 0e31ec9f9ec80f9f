"""Streaming sinks without Spark: two for the tests to kill, mark and clear, and one that fails repeatedly."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.retry_policy import RETRY_ARGUMENTS

LIGHT_SINK = (sys.executable, "-m", "tests.support.light_sink")

FALTERING: dict[str, Any] = {"end": "FAILED", "after": 3, "error": "UnavailableError: no broker"}

for name, deferrable, manners in (
    ("light_stream_on_worker", False, {}),
    ("light_stream_deferred", True, {}),
    ("light_stream_faltering", False, FALTERING),
):
    with DAG(
        dag_id=name,
        schedule=None,
        # After a worker's crash Airflow does not call the retry policy; this plain delay applies instead.
        default_args=RETRY_ARGUMENTS | {"retry_delay": timedelta(seconds=1)},
    ):
        StreamSinkOperator(
            task_id="stream_sink",
            table="life.events",
            source={"kind": "debezium_json", "name": "changes"},
            command=LIGHT_SINK,
            deferrable=deferrable,
            write_options=manners,
            poll_seconds=0.2,
        )
