"""Checks a table's newest snapshot: a critical expectation that is not met fails the run, a warning is counted."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.validate_table import ValidateTableOperator

KEY = ["flight_date", "time_hour", "carrier", "flight"]
FLIGHT_EXPECTATIONS = [
    {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}, "severity": "critical"},
    {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": KEY}, "severity": "critical"},
    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "dest"}, "severity": "critical"},
    {
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "origin", "value_set": ["EWR", "JFK", "LGA"]},
        "severity": "critical",
    },
    {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "distance", "min_value": 1, "max_value": 6000},
        "severity": "critical",
    },
    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "temp", "mostly": 0.9}, "severity": "warning"},
]

with DAG(
    dag_id="validate",
    description="Check a dynamic table with Great Expectations",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "expectations": Param(FLIGHT_EXPECTATIONS, type="array", items={"type": "object"}, title="Expectations"),
        "partition": Param(
            None,
            type=["null", "object"],
            title="Partition",
            description='Like {"flight_date": "2013-01-01"}; none: the whole table.',
        ),
        "snapshot_id": Param(None, type=["null", "integer"], title="Snapshot id", description="None: the newest."),
    },
):
    ValidateTableOperator(
        task_id="validate_table",
        table="{{ params.table }}",
        expectations="{{ params.expectations }}",
        partition="{{ params.partition }}",
        snapshot_id="{{ params.snapshot_id }}",
    )
