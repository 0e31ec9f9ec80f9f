"""Keeps materialized tables fresh within seconds, in one process, until its task is marked as success.

In place of `refresh_materialized_tables`, which starts Spark for each refresh; both may run at once.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head, master_param
from dynamic_table.operators.run_refresher import RefresherOperator

with DAG(
    dag_id="keep_tables_fresh",
    description="Keep materialized tables fresh within seconds",
    schedule=None,
    **dag_head(__doc__),
    params={
        "tables": Param(
            None, type=["null", "array"], title="Tables", description="One database.table per line; none: all of them."
        ),
        "refresh_poll_seconds": Param(1, type="number", exclusiveMinimum=0, title="Seconds between looks at sources"),
        "master": master_param("local[2]"),
        "spark_conf": Param(None, type=["null", "object"], title="Spark settings", section="More"),
    },
):
    RefresherOperator(
        task_id="refresher",
        tables="{{ params.tables }}",
        refresh_poll_seconds="{{ params.refresh_poll_seconds }}",
        master="{{ params.master }}",
        spark_conf="{{ params.spark_conf }}",
        deferrable=True,
    )
