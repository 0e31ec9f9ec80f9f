"""Keeps materialized tables fresh: a DAG per table, `refresh.<database>.<table>`, made from the catalog.

The DAG `refresh_materialized_tables` copies the list of materialized tables from the catalog into the Airflow variable
`dynamic_tables_materialized` every minute; pause it to keep the DAGs as they are. The DAG of a table appears, changes
and disappears within two minutes after its CREATE, ALTER and DROP.

A table is refreshed when an Airflow task has committed to one of its sources, and if it has a FRESHNESS, every half of
it, which also finds commits of other processes. A table without FRESHNESS is refreshed by asset events and by hand
only. One with TARGET_LAG = DOWNSTREAM is refreshed by the DAGs of the tables that read it. A suspended table has no
schedule, and its runs are skipped.
"""

from __future__ import annotations

from airflow.sdk import DAG

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.list_materialized_tables import ListMaterializedTablesOperator
from dynamic_table.refresh_dags import refresh_dags

with DAG(
    dag_id="refresh_materialized_tables",
    description="List the materialized tables, to make a DAG for each",
    schedule="* * * * *",
    max_active_runs=1,
    **dag_head(__doc__),
):
    ListMaterializedTablesOperator(task_id="list_materialized_tables")

DAGS_OF_TABLES = refresh_dags(__doc__)
