"""A declaration file is converted to operators' arguments, or to an error with file, table, key and remedy."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynamic_table.declarations.table_declarations import read_declarations
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.read_table_declarations import ReadTableDeclarationsOperator
from storage_lib import SetOption, open_catalog
from storage_lib.errors import AlreadyExistsError, InvalidInputError
from tests.support.task_context import announced, task_context

DAGS = Path(__file__).resolve().parents[3] / "dags"
TWO_TABLES = """
tables:
  shop.orders:
    columns: &columns {day: DATE, id: BIGINT NOT NULL, price: "DECIMAL(10, 2)"}
    primary_key: [day, id]
    partition_by: [day]
    options: {bucket: 4, deletion-vectors.enabled: true}
    comment: What was sold
    pool_slots: 2
  shop.returns:
    columns: {<<: *columns, reason: STRING, place: "BIGINT METADATA FROM 'offset'"}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "tables.yaml"
    path.write_text(text)
    return path


def test_a_file_becomes_one_operators_arguments_a_table(tmp_path: Path) -> None:
    written(tmp_path, TWO_TABLES)

    orders, returns = read_declarations("tables.yaml", tmp_path)

    assert orders == {
        "table": "shop.orders",
        "columns": {"day": "DATE", "id": "BIGINT NOT NULL", "price": "DECIMAL(10, 2)"},
        "primary_key": ["day", "id"],
        "partition_by": ["day"],
        "options": {"bucket": 4, "deletion-vectors.enabled": True},
        "comment": "What was sold",
        "table_pool_slots": 2,
    }
    assert (returns["table"], sorted(returns["columns"])) == ("shop.returns", ["day", "id", "place", "price", "reason"])


def test_a_function_may_declare_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    declared = {"tables": {"shop.orders": {"columns": {"id": "BIGINT"}}}}
    monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__CALLABLE_MODULES", "our_tables:declared")
    monkeypatch.setitem(sys.modules, "our_tables", SimpleNamespace(declared=lambda: declared))

    [orders] = read_declarations("our_tables:declared", tmp_path)

    assert (orders["table"], orders["columns"], orders["primary_key"]) == ("shop.orders", {"id": "BIGINT"}, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "declares no tables; write tables: {shop.orders"),
        ("tables: {}", "declares no tables"),
        ("tables: {a.b: {columns: {id: INT}}}\ndefaults: {}", "unknown key 'defaults'"),
        ("tables: {orders: {columns: {id: INT}}}", "'orders' without a database"),
        ("tables: {a.b: [id]}", "table a.b is ['id']; it has to be a mapping with columns, primary_key"),
        ("tables: {a.b: {column: {id: INT}}}", "table a.b has the unknown key 'column'; known are columns"),
        ("tables: {a.b: {primary_key: [id]}}", "table a.b has no columns; add"),
        ("tables: {a.b: {columns: {on: INT}}}", "table a.b: columns is {True: 'INT'}; it has to be a mapping"),
        ("tables: {a.b: {columns: {id: INT}, primary_key: id}}", "table a.b: primary_key is 'id'; it has to be a list"),
        ("tables: {a.b: {columns: {id: INT}, partition_by: [day]}}", "partition_by names the unknown column 'day'"),
        ("tables: {a.b: {columns: {id: INTEGR}}}", "table a.b, column id: "),
        (
            "tables: {a.b: {columns: {id: INT}, options: {log.kafka.sasl.plain.password: x}}}",
            "move it to the connection",
        ),
        ("tables:\n  a.b: {columns: {id: INT}}\n  a.b: {columns: {id: INT}}", "line 3: duplicate key 'a.b'"),
        ("tables: {a.b: {columns: {id: INT, id: INT}}}", "line 1: duplicate key 'id'"),
        ("tables: [", "is not YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)

    with pytest.raises(InvalidInputError, match=re.escape(said)) as refused:
        read_declarations("tables.yaml", tmp_path)
    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.yaml does not exist"):
        read_declarations("nowhere.yaml", tmp_path)


def provision(arguments: dict[str, Any], **named: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    context = task_context(task := ProvisionTableOperator(task_id="provision", **arguments, **named))
    return task.execute(context), announced(context)


def test_the_projects_own_file_makes_the_example_table_once(warehouse: Path) -> None:
    read = ReadTableDeclarationsOperator(task_id="read", source="tables.yaml")
    [flights] = read.execute({"dag": SimpleNamespace(folder=str(DAGS))})  # type: ignore[typeddict-item]
    assert flights.pop("table_pool_slots") == 4, "a pool is made in a real Airflow only"

    made, events = provision(flights)
    again, silence = provision(flights)

    assert (made["table"], made["version"], made["drift"]) == ("demo.flights", 0, [])
    assert (again["version"], again["drift"], len(events), silence) == (None, [], 1, [])
    assert open_catalog(str(warehouse)).load_table("demo.flights").schema.partition_keys == ("flight_date",)


def test_drift_fails_with_all_its_lines_or_is_a_result_and_changes_nothing(warehouse: Path) -> None:
    declared: dict[str, Any] = {"table": "a.b", "columns": {"id": "BIGINT"}, "primary_key": ["id"]}
    provision(declared)
    table = open_catalog(str(warehouse)).load_table("a.b").alter(SetOption("snapshot.time-retained", "2 h"))
    other = declared | {"columns": {"id": "INT", "note": "STRING"}}
    lines = [
        "column id: BIGINT NOT NULL in the table, declared as INT NOT NULL",
        "column note: not in the table, declared as STRING",
        "option snapshot.time-retained: 2 h in the table, not declared; not set when it was created",
    ]

    with pytest.raises(AlreadyExistsError) as refused:
        provision(other)
    warned, events = provision(other, on_drift="warn")

    assert all(f"\n  {line}\n" in str(refused.value) for line in lines)
    assert (warned["version"], warned["drift"], events) == (None, lines, [])
    assert open_catalog(str(warehouse)).load_table("a.b").schema == table.schema
