"""Keeps one streaming sink running for every table that declares a `stream` in the declaration file.

The file is `tables.yaml` next to this DAG, or the one that the Airflow variable `dynamic_tables_file` names, as for
`provision_tables`. Each task of a run monitors one sink: a sink that fails is restarted from its checkpoint with
increasing delays; after ten failures in a row without a finished batch its task fails with the last error. Clear that
task to restart the sink; mark it as success to stop the sink until the next run.

When the file changes, the run hands over and ends. The next run, within a minute, starts new sinks, restarts changed
ones, stops removed ones, and continues to monitor the others, which keep running. A change of the variable is noticed
within ten minutes, or at once if the run is marked as success. To stop all sinks, pause this DAG and mark its run as
success.
"""

from __future__ import annotations

from airflow.sdk import DAG

from dynamic_table.arguments.mapped_arguments import of_stream
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
    # A run lasts until the file changes. If the file can't be read, the run fails, and the next one starts in a minute.
    schedule="* * * * *",
    max_active_runs=1,
    # With a versioned bundle a run would never see a change of the file.
    disable_bundle_versioning=True,
    **dag_head(__doc__, retries=10),
):
    streams = ReadStreamsOperator(task_id="read_streams", source=DECLARATIONS).output
    SuperviseSinkOperator.partial(
        task_id="stream_sink", deferrable=True, map_index_template="{{ task.table }}"
    ).expand_kwargs(streams.map(of_stream))
    AwaitStreamChangesOperator(task_id="await_changes", source=DECLARATIONS, streams=streams)
