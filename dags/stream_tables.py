"""Keeps one sink for every table that declares a `stream` in the file of tables, whatever dies.

The file is `tables.yaml` beside this DAG, or what the Airflow variable `dynamic_tables_file` names: the one that
`provision_tables` reads. A run's tasks watch one sink each: a sink that fails is started again from its checkpoint,
later each time, and one that fails ten times in a row without a batch in between leaves its task red, with the last
error. Clear that task to begin anew; mark it as success to stop the sink until the next run.

When the file changes, the run hands over and ends, and the next one, within a minute, starts what is new, restarts what
is declared otherwise, stops what is gone, and goes on watching the rest, which never noticed. That the variable names
another file is noticed within ten minutes, or at once if the run is marked as success. To stop all sinks, pause this
DAG and mark its run as success.
"""

from __future__ import annotations

from airflow.sdk import DAG

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.supervise_sinks import (
    AwaitStreamChangesOperator,
    ReadStreamsOperator,
    SuperviseSinkOperator,
)

DECLARATIONS = "{{ var.value.get('dynamic_tables_file', 'tables.yaml') }}"

with DAG(
    dag_id="stream_tables",
    description="Keep a streaming sink for every declared stream",
    # A run lasts until the file changes. One that can't read the file fails, and is tried again every minute.
    schedule="* * * * *",
    max_active_runs=1,
    # With a versioned bundle a run would see the file as it was when the run began, for ever.
    disable_bundle_versioning=True,
    **dag_head(__doc__, retries=10),
):
    streams = ReadStreamsOperator(task_id="read_streams", source=DECLARATIONS).output
    SuperviseSinkOperator.partial(
        task_id="stream_sink", deferrable=True, map_index_template="{{ task.table }}"
    ).expand_kwargs(streams)
    AwaitStreamChangesOperator(task_id="await_changes", source=DECLARATIONS, streams=streams)
