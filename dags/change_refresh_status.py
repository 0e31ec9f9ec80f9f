"""Suspends or resumes a materialized table. A resumed table is refreshed at once."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head, master_param
from dynamic_table.operators.refresh_materialized_table import RefreshMaterializedTableOperator
from dynamic_table.operators.set_refresh_status import SetRefreshStatusOperator

with DAG(
    dag_id="change_refresh_status",
    description="Suspend or resume a materialized table",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("shop.daily", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "change": Param("suspend", type="string", enum=["suspend", "resume"], title="Change"),
        "master": master_param(None),
    },
):
    SetRefreshStatusOperator(
        task_id="set_status", table="{{ params.table }}", change="{{ params.change }}"
    ) >> RefreshMaterializedTableOperator(task_id="refresh", table="{{ params.table }}", master="{{ params.master }}")
