"""A streaming sink without Spark, on a worker and deferred: what the tests kill, mark and clear."""

from __future__ import annotations

import sys
from datetime import timedelta

from airflow.sdk import DAG

from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.retry_policy import RETRY_ARGUMENTS

LIGHT_SINK = (sys.executable, "-m", "tests.support.light_sink")

for name, deferrable in (("light_stream_on_worker", False), ("light_stream_deferred", True)):
    with DAG(
        dag_id=name,
        schedule=None,
        # A worker that dies is not asked for a policy: there the plain delay counts.
        default_args=RETRY_ARGUMENTS | {"retry_delay": timedelta(seconds=1)},
    ):
        StreamSinkOperator(
            task_id="stream_sink",
            table="life.events",
            source={"kind": "debezium_json", "name": "changes"},
            command=LIGHT_SINK,
            deferrable=deferrable,
            poll_seconds=0.2,
        )
