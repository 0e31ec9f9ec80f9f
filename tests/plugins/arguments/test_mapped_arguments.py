"""A mapped task takes from another task's result only what a form may give, because a User may change results."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dynamic_table.arguments.mapped_arguments import (
    CHECKS_OF_MAPPED,
    STREAM,
    SYNC,
    keeps_tables,
    of_compaction,
    of_stream,
    of_sync,
    of_table,
)
from dynamic_table.declarations import stream_declarations, sync_declarations
from dynamic_table.declarations.stream_declarations import read_streams
from dynamic_table.declarations.sync_declarations import read_syncs
from dynamic_table.declarations.table_declarations import read_declarations
from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.run_sync import SyncDatabaseOperator
from dynamic_table.operators.supervise_sinks import SuperviseSinkOperator
from storage_lib import InvalidInputError
from tests.support.operator_parameters import parameters_of

OPERATORS: dict[Any, Any] = {
    of_stream: SuperviseSinkOperator,
    of_sync: SyncDatabaseOperator,
    of_table: ProvisionTableOperator,
    of_compaction: CompactTableOperator,
}
FILE = """
tables:
  shop.orders:
    columns: {id: BIGINT}
    primary_key: [id]
    options: {bucket: 1}
    comment: ours
    pool_slots: 2
    stream:
      source: {kind: debezium_json, name: shop.changes}
      trigger_seconds: 1
      max_rows_per_trigger: 9
      select: [id]
      write_options: {a: b}
      master: local[1]
      spark_conf: {spark.executor.memory: 1g}
syncs:
  shop:
    topics: shop.*
    into: shop
"""


def test_what_a_file_declares_is_admitted(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(FILE)

    for check, read in ((of_stream, read_streams), (of_table, read_declarations), (of_sync, read_syncs)):
        (declared,) = read("tables.yaml", tmp_path)
        assert check(declared) == declared
    assert set(STREAM) == {"table", *stream_declarations.CHECKS}
    assert set(SYNC) == {*sync_declarations.CHECKS}
    with pytest.raises(InvalidInputError, match=r"takes only buckets, table from .* not \['command'\]"):
        of_compaction({"command": "x"})
    assert of_compaction({"table": "a.t", "buckets": None}) == {"table": "a.t", "buckets": None}


@pytest.mark.parametrize("check", CHECKS_OF_MAPPED, ids=lambda check: check.__name__)
def test_no_other_argument_of_the_operator_is_admitted(check: Any) -> None:
    """Among them ``command``, which is a program, and all that Airflow itself gives to an operator."""
    chance = random.Random(0)  # noqa: S311
    every = parameters_of(OPERATORS[check])
    admitted = {name for name in every if _is_admitted(check, {name: "x"})}

    assert not admitted & {"command", "jobs_directory", "dynamic_table_conn_id", "airflow_conn_id", "ddl", "executor"}
    assert admitted <= set(OPERATORS[check].template_fields)
    for _ in range(50):
        names = chance.sample(sorted(every), 3)
        assert _is_admitted(check, dict.fromkeys(names, "x")) == (set(names) <= admitted)
    for wrong in (None, "table", ["table"], [("table", "a.t")], {1: "x"}):
        assert not _is_admitted(check, wrong)


def test_the_pool_of_a_mapped_task_is_known_behind_these_checks_only() -> None:
    import inspect

    assert keeps_tables([of_stream])
    assert keeps_tables([inspect.getsource(of_compaction)])
    assert not keeps_tables(["lambda table: other(table)"])
    assert not keeps_tables([of_stream, lambda each: each])


def _is_admitted(check: Any, arguments: Any) -> bool:
    try:
        check(arguments)
    except InvalidInputError:
        return False
    return True
