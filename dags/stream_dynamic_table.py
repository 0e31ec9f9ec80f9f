"""Runs a streaming sink into a table until its task is ended; mark the task as success to stop the sink cleanly."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head, master_param
from dynamic_table.operators.stream_sink import StreamSinkOperator

with DAG(
    dag_id="stream",
    description="Run a streaming sink into a dynamic table",
    schedule=None,
    # Not limited to one run: each table has its own run, and the operator refuses a second sink of one table.
    **dag_head(__doc__),
    params={
        "table": Param("demo.flights", type="string", pattern=r"^\w+\.\w+$", title="Table"),
        "source_kind": Param("debezium_json", type="string", enum=["debezium_json", "dynamic_table"], title="Source"),
        "source_name": Param(
            "flights.changes",
            type="string",
            minLength=1,
            title="Topic or table to read",
            description="A topic of database changes, or database.table.",
        ),
        "trigger_seconds": Param(2, type="number", minimum=0, title="Seconds between micro-batches"),
        "available_now": Param(False, type="boolean", title="Process the data available now, then end"),
        "source_schema": Param(
            None,
            type=["null", "string"],
            title="Columns of the topic",
            description="Spark DDL such as id BIGINT, name STRING; none: the table's columns.",
            section="More",
        ),
        "source_options": Param(None, type=["null", "object"], title="Options of the source", section="More"),
        "select": Param(
            None,
            type=["null", "array"],
            title="Spark SQL expressions",
            description="One per line; none: all columns unchanged.",
            section="More",
        ),
        "write_options": Param(
            None,
            type=["null", "object"],
            title="Options of the write",
            description='Like {"change-tracking": false}.',
            section="More",
        ),
        "master": master_param("local[2]"),
        "spark_conf": Param(None, type=["null", "object"], title="Spark settings", section="More"),
    },
):
    StreamSinkOperator(
        task_id="stream_sink",
        table="{{ params.table }}",
        source={
            "kind": "{{ params.source_kind }}",
            "name": "{{ params.source_name }}",
            "schema": "{{ params.source_schema }}",
            "options": "{{ params.source_options }}",
        },
        select="{{ params.select }}",
        trigger_seconds="{{ params.trigger_seconds }}",
        available_now="{{ params.available_now }}",
        write_options="{{ params.write_options }}",
        master="{{ params.master }}",
        spark_conf="{{ params.spark_conf }}",
        deferrable=True,
    )
