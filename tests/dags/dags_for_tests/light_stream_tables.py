"""The supervisor of sinks, with sinks without Spark, as declared in ``light_tables.yaml`` in Airflow's home."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

from airflow.sdk import DAG

from dynamic_table.operators.supervise_sinks import (
    AwaitStreamChangesOperator,
    ReadStreamsOperator,
    SuperviseSinkOperator,
)
from dynamic_table.retry_policy import RETRY_ARGUMENTS

DECLARATIONS = f"{os.environ['AIRFLOW_HOME']}/light_tables.yaml"

with DAG(
    dag_id="light_stream_tables",
    # Not "@continuous": without a start date Airflow 3.3 tries to create the first run repeatedly.
    schedule=timedelta(seconds=2),
    catchup=False,
    max_active_runs=1,
    default_args=RETRY_ARGUMENTS,
    render_template_as_native_obj=True,
):
    streams = ReadStreamsOperator(task_id="read_streams", source=DECLARATIONS).output
    SuperviseSinkOperator.partial(
        task_id="stream_sink",
        deferrable=True,
        poll_seconds=0.2,
        command=(sys.executable, "-m", "tests.support.light_sink"),
        map_index_template="{{ task.table }}",
    ).expand_kwargs(streams)
    AwaitStreamChangesOperator(task_id="await_changes", source=DECLARATIONS, streams=streams, poll_seconds=0.2)
