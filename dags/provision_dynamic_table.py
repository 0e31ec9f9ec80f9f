"""Creates a dynamic table from a form; the defaults describe the example table ``demo.flights``."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.provision_table import ProvisionTableOperator

FLIGHT_COLUMNS = {
    "flight_date": "DATE",
    "time_hour": "TIMESTAMP(6)",
    "carrier": "STRING",
    "flight": "INT",
    "origin": "STRING",
    "dest": "STRING",
    "tailnum": "STRING",
    "dep_time": "INT",
    "sched_dep_time": "INT",
    "dep_delay": "INT",
    "arr_time": "INT",
    "sched_arr_time": "INT",
    "arr_delay": "INT",
    "air_time": "INT",
    "distance": "INT",
    "temp": "DOUBLE",
    "wind_speed": "DOUBLE",
    "precip": "DOUBLE",
    "visib": "DOUBLE",
}

with DAG(
    dag_id="provision",
    description="Create a dynamic table with both its stores",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "columns": Param(FLIGHT_COLUMNS, type="object", title="Columns and types"),
        "primary_key": Param(
            ["flight_date", "time_hour", "carrier", "flight"],
            type="array",
            title="Primary key",
            description="One column per line; must include the partition columns.",
        ),
        "partition_by": Param(
            ["flight_date"], type=["null", "array"], title="Partition columns", description="One per line, or none."
        ),
        "ddl": Param(
            None,
            type=["null", "string"],
            format="multiline",
            title="Or: CREATE TABLE",
            description="A statement with columns, keys, partitions, options and comment.",
            section="More",
        ),
        "options": Param({"bucket": "2"}, type=["null", "object"], title="Table options", section="More"),
        "pool_slots": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Slots of its pool",
            description="Number of tasks that may rewrite files of the table at a time; none: create no pool.",
            section="More",
        ),
        "comment": Param(
            "Flights that left New York in 2013", type=["null", "string"], title="Comment", section="More"
        ),
    },
):
    ProvisionTableOperator(
        task_id="provision_table",
        table="{{ params.table }}",
        ddl="{{ params.ddl }}",
        columns="{{ None if params.ddl else params.columns }}",
        primary_key="{{ None if params.ddl else params.primary_key }}",
        partition_by="{{ None if params.ddl else params.partition_by }}",
        options="{{ None if params.ddl else params.options }}",
        comment="{{ None if params.ddl else params.comment }}",
        table_pool_slots="{{ params.pool_slots }}",
    )
