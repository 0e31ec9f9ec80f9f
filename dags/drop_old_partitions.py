"""Drops a table's partitions before a day (or a given list) in one commit, in parallel with streaming writers.

With *Needs approval* the run first lists the partitions and waits for approval (Browse, Required actions). It then
drops exactly the approved partitions.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.approve_drop import ApproveDropOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator

with DAG(
    dag_id="drop_old_partitions",
    description="Drop old partitions of a dynamic table",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "column": Param("flight_date", type="string", title="Partition column"),
        "before": Param("2013-01-02", type="string", format="date", title="Drop partitions before this day"),
        "needs_approval": Param(
            False,
            type="boolean",
            title="Needs approval",
            description="Wait for approval of the list of partitions before dropping them.",
        ),
        # Without an item type, Airflow's form treats the items as lines of text.
        "partitions": Param(
            None,
            type=["null", "array"],
            items={"type": "object"},
            title="Or: exactly these partitions",
            description='A list like [{"flight_date": "2013-01-01"}]; each must exist.',
            section="More",
        ),
        "change_tracking": Param(
            False,
            type="boolean",
            title="Write to the log",
            description="Streams that read the table see the deletions.",
            section="More",
        ),
    },
):
    approve = ApproveDropOperator(
        task_id="approve_drop",
        table="{{ params.table }}",
        partitions="{{ params.partitions }}",
        before="{{ {params.column: params.before} }}",
        needs_approval="{{ params.needs_approval }}",
    )
    drop = DropPartitionsOperator(
        task_id="drop_partitions",
        table="{{ params.table }}",
        approved="{{ ti.xcom_pull('approve_drop', key='partitions') }}",
        partitions="{{ params.partitions }}",
        before="{{ {params.column: params.before} }}",
        change_tracking="{{ params.change_tracking }}",
    )
    approve >> drop
