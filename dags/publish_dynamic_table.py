"""Writes one day of a table to a branch, audits it there, and publishes it in one snapshot if the audit succeeds.

Readers of the table do not see the branch. If a critical expectation is not met, the run fails and leaves the branch
for inspection: `SELECT * FROM database.table$branch_name`. Clear the run from `create_branch` once the source is fixed.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param, chain

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.create_branch import CreateBranchOperator
from dynamic_table.operators.publish_branch import PublishBranchOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.validate_table import ValidateTableOperator

KEY = ["flight_date", "time_hour", "carrier", "flight"]
DAY_EXPECTATIONS = [
    {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 500}, "severity": "critical"},
    {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": KEY}, "severity": "critical"},
    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "dest"}, "severity": "critical"},
]
# One branch per run, so that parallel runs do not share a branch.
BRANCH = "{{ 'audit_' ~ dag_run.run_after.strftime('%Y%m%d_%H%M%S_%f') }}"
DAY = "{{ {params.column: params.day} }}"

with DAG(
    dag_id="publish",
    description="Write to a branch, audit it, publish it",
    schedule=None,
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "column": Param("flight_date", type="string", title="Partition column"),
        "day": Param("2013-01-01", type="string", format="date", title="Day"),
        "rows": Param(
            "flights.nyc_flights:flights_of_day",
            type="string",
            title="Source",
            description="module:function in the DAGs folder (by default) that returns a day's rows as an Arrow table.",
        ),
        "expectations": Param(
            DAY_EXPECTATIONS, type="array", items={"type": "object"}, title="Expectations of the day's rows"
        ),
        "change_tracking": Param(
            None,
            type=["null", "boolean"],
            title="Write to the log",
            description="None: if the table has one.",
            section="More",
        ),
        "time_retained": Param(
            "7 d",
            type=["null", "string"],
            title="Keep the branch for",
            description="If it is not published, or kept: maintain deletes it afterwards. None: for ever.",
            section="More",
        ),
        "keep_branch": Param(False, type="boolean", title="Keep the branch after publishing it", section="More"),
    },
):
    chain(
        CreateBranchOperator(
            task_id="create_branch",
            table="{{ params.table }}",
            branch=BRANCH,
            time_retained="{{ params.time_retained }}",
        ),
        ReprocessPartitionsOperator(
            task_id="write_rows", table="{{ params.table }}", branch=BRANCH, partitions=DAY, rows="{{ params.rows }}"
        ),
        ValidateTableOperator(
            task_id="audit",
            table="{{ params.table }}",
            branch=BRANCH,
            partition=DAY,
            expectations="{{ params.expectations }}",
        ),
        PublishBranchOperator(
            task_id="publish",
            table="{{ params.table }}",
            branch=BRANCH,
            change_tracking="{{ params.change_tracking }}",
            keep_branch="{{ params.keep_branch }}",
        ),
    )
