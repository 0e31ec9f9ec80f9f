"""Creates the missing tables of a declaration file, and reports existing tables that differ from it as drift.

The file is `tables.yaml` next to this DAG, or the one given in the form or the Airflow variable `dynamic_tables_file`.
It is read when the DAG runs. An existing table is never changed: if it differs, its task fails with the list of
differences, or with `on_drift` = warn writes the list into its log and result.

A table that declares `pool_slots` gets an Airflow pool, which limits concurrent rewrites of its files. The DAG also
creates the pool of `maintain`. It calls Airflow's API as the user of the connection `airflow_api`.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.arguments.mapped_arguments import of_table
from dynamic_table.dag_head import dag_head
from dynamic_table.operators.provision_pool import ProvisionPoolOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.read_table_declarations import ReadTableDeclarationsOperator
from dynamic_table.table_events import TABLE_EVENTS
from dynamic_table.table_pools import MAINTENANCE_POOL

with DAG(
    dag_id="provision_tables",
    description="Create the tables that a file declares, and report drift from it",
    schedule=None,
    **dag_head(__doc__),
    params={
        "file": Param(
            None,
            type=["null", "string"],
            title="File",
            description="YAML file (absolute or relative to the DAG's folder) or module:function; none: the variable "
            "dynamic_tables_file, else tables.yaml.",
        ),
        "on_drift": Param("fail", enum=["fail", "warn"], title="If a table differs from the file"),
        "maintenance_slots": Param(
            4,
            type=["null", "integer"],
            minimum=1,
            title="Tables maintained at a time",
            description="Slots of the pool that maintain uses; it is created if it is missing. None: create no pool.",
            section="More",
        ),
    },
):
    ProvisionPoolOperator(
        task_id="provision_pool",
        pool_name=MAINTENANCE_POOL,
        slots="{{ params.maintenance_slots }}",
        pool_description="Compactions and expiries of the DAG maintain",
    )
    declared = ReadTableDeclarationsOperator(
        task_id="read_tables",
        source="{{ params.file or var.value.get('dynamic_tables_file', 'tables.yaml') }}",
    ).output
    ProvisionTableOperator.partial(
        task_id="provision_table",
        on_drift="{{ params.on_drift }}",
        outlets=[TABLE_EVENTS],
        map_index_template="{{ task.table }}",
    ).expand_kwargs(declared.map(of_table))
