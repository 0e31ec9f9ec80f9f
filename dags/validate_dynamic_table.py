"""Validates a table's newest snapshot: an unmet critical expectation fails the run, others are only counted."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head, engine_params
from dynamic_table.operators.validate_table import ValidateTableOperator

with DAG(
    dag_id="validate",
    description="Check a dynamic table with Great Expectations",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "expectations": Param(
            None,
            type=["null", "array"],
            items={"type": "object"},
            title="Expectations",
            description="None: those of expectations/database.table.yaml next to this DAG.",
        ),
        "partition": Param(
            None,
            type=["null", "object"],
            title="Partition",
            description='Like {"flight_date": "2013-01-01"}; none: the whole table.',
        ),
        "snapshot_id": Param(None, type=["null", "integer"], title="Snapshot id", description="None: the newest."),
        **engine_params(),
    },
):
    ValidateTableOperator(
        task_id="validate_table",
        table="{{ params.table }}",
        expectations="{{ params.expectations }}",
        partition="{{ params.partition }}",
        snapshot_id="{{ params.snapshot_id }}",
        engine="{{ params.engine }}",
        master="{{ params.master }}",
    )
