"""Writes rejected records of a table (`database.table$rejected`) into it, after a fix.

A record that still does not fit stays, and the task's log says why. Alter the table first if the records are right and
the table is not.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.reingest_rejected import STORED, ReingestRejectedOperator

with DAG(
    dag_id="reingest",
    description="Write rejected records into a dynamic table",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "format": Param(
            "debezium-json", type="string", title="Format of the records", description="As that of the ingestion."
        ),
        "fixes": Param(
            None,
            type=["null", "object"],
            title="Fixes",
            description='Expressions by column that change JSON records first, like {"name": "left(name, 10)"}.',
        ),
        "on_stored": Param(
            "keep",
            enum=list(STORED),
            title="Keys that have a row",
            description="A stored row may be newer than the record: keep the record rejected, replace the row, or "
            "discard the record.",
        ),
        "ids": Param(
            None,
            type=["null", "array"],
            items={"type": "string"},
            title="Records",
            description="Ids, one per line. None: all.",
            section="More",
        ),
        "source": Param(None, type=["null", "string"], title="Only of this source", section="More"),
        "column": Param(None, type=["null", "string"], title="Only refused for this column", section="More"),
    },
):
    ReingestRejectedOperator(
        task_id="reingest",
        table="{{ params.table }}",
        format="{{ params.format }}",
        fixes="{{ params.fixes }}",
        on_stored="{{ params.on_stored }}",
        ids="{{ params.ids }}",
        source="{{ params.source }}",
        column="{{ params.column }}",
    )
