"""Makes tables follow every database that the declaration file lists under `syncs`.

The file is `tables.yaml` next to this DAG, or the one that the Airflow variable `dynamic_tables_file` names, as for
`provision_tables`. Each run reads all topics of each sync up to their ends, in a task of its own, and creates the
tables of new topics. Topics that stop fail the task after it, so that the tables of the others are announced.
"""

from __future__ import annotations

from airflow.sdk import DAG

from dynamic_table.arguments.mapped_arguments import of_sync
from dynamic_table.dag_head import dag_head
from dynamic_table.operators.check_sync import CheckSyncOperator
from dynamic_table.operators.read_sync_declarations import ReadSyncsOperator
from dynamic_table.operators.run_sync import SyncDatabaseOperator
from dynamic_table.table_events import TABLE_EVENTS

DECLARATIONS = "{{ var.value.get('dynamic_tables_file', 'tables.yaml') }}"

with DAG(
    dag_id="sync_databases",
    description="Follow all tables of every declared database",
    schedule="*/5 * * * *",
    max_active_runs=1,
    **dag_head(__doc__),
):
    syncs = ReadSyncsOperator(task_id="read_syncs", source=DECLARATIONS).output
    sync = SyncDatabaseOperator.partial(
        task_id="sync", on_stopped="report", outlets=[TABLE_EVENTS], map_index_template="{{ task.into }}"
    ).expand_kwargs(syncs.map(of_sync))
    CheckSyncOperator.partial(task_id="check").expand(result=sync.output)
