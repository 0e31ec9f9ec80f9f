"""Makes tables follow all topics of a database that match a pattern.

Creates a table for each topic from the schema of its records, and reads each up to its end. To follow a database,
copy this file with a schedule and fixed parameters; the runs continue where the tables' snapshots say. Topics that
stop fail the task `check`, after the tables of the others were announced.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from dynamic_table.dag_head import dag_head
from dynamic_table.operators.check_sync import CheckSyncOperator
from dynamic_table.operators.run_sync import SyncDatabaseOperator

with DAG(
    dag_id="sync",
    description="Follow all tables of a database by their topics",
    schedule=None,
    **dag_head(__doc__),
    params={
        "topics": Param("shop.public.*", type="string", title="Topics", description="A pattern with * and ?."),
        "into": Param("shop", type="string", pattern=r"^\w+$", title="Database of the tables"),
        "format": Param(
            "debezium-json-schema",
            enum=[
                "debezium-json-schema",
                "debezium-avro",
                "debezium-flattened-json-schema",
                "debezium-flattened-avro",
                "debezium-json",
            ],
            title="Format of the records",
            description="debezium-json has no schemas: the tables have to exist.",
        ),
        "exclude": Param(
            None, type=["null", "array"], items={"type": "string"}, title="Topics to leave out, one per line"
        ),
        "on_reject": Param(
            "quarantine",
            enum=["quarantine", "fail", "skip"],
            title="Records that do not fit",
            description="Keep them in <table>$rejected, stop their topic, or skip them.",
        ),
        "prefix": Param(None, type=["null", "string"], title="Beginning of the tables' names", section="Names"),
        "suffix": Param(None, type=["null", "string"], title="End of the tables' names", section="Names"),
        "rename": Param(
            None,
            type=["null", "object"],
            title="Other names",
            description='Regular expressions with names, like {"orders_[0-9]+": "orders"}.',
            section="Names",
        ),
        "merge_shards": Param(
            False, type="boolean", title="Read topics that get the same name into one table", section="Names"
        ),
        "table_options": Param(
            None, type=["null", "object"], title="Options of new tables", description='Like {"bucket": "4"}.'
        ),
    },
):
    sync = SyncDatabaseOperator(
        task_id="sync",
        topics="{{ params.topics }}",
        into="{{ params.into }}",
        format="{{ params.format }}",
        exclude="{{ params.exclude }}",
        prefix="{{ params.prefix }}",
        suffix="{{ params.suffix }}",
        rename="{{ params.rename }}",
        merge_shards="{{ params.merge_shards }}",
        options={"source.on-reject": "{{ params.on_reject }}"},
        table_options="{{ params.table_options }}",
        on_stopped="report",
    )
    CheckSyncOperator(task_id="check", result=sync.output)
