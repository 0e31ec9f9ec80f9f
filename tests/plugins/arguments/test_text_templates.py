"""Text of a form reaches an operator as it is, in a DAG that renders to native objects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk import DAG

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.process_changes import ProcessChangesOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.run_sql import SqlOperator
from dynamic_table.sensors.table_sensors import PartitionSensor
from tests.support.deep_tests import thinned

AWKWARD = ("2024.10", "2013", "007", "1_0.5_0", "1e3", "0x10", "None", "True", "[1]", "{1: 2}", "'x'", "1,", "b'a'")
"""Texts that Python would read as something else."""


@pytest.fixture
def dag() -> Iterator[DAG]:
    with DAG("native", schedule=None, render_template_as_native_obj=True) as native:
        yield native


def rendered(task: Any, **params: Any) -> dict[str, Any]:
    task.render_template_fields({"params": params})
    return {name: getattr(task, name) for name in task.template_fields}


@pytest.mark.parametrize("text", AWKWARD)
def test_a_parameter_that_is_text_stays_text(dag: DAG, text: str) -> None:
    task = ReprocessPartitionsOperator(
        task_id="t",
        table="{{ params.text }}",
        partitions="{{ [{params.text: params.text}] }}",
        rows="{{ params.text }}",
        rows_kwargs={"topic": "{{ params.text }}"},
        query="{{ None if params.text else 1 }}",
    )

    fields = rendered(task, text=text)

    assert fields["table"] == fields["rows"] == text
    assert fields["partitions"] == [{text: text}]
    assert fields["rows_kwargs"] == {"topic": text}
    assert fields["query"] is None


@pytest.mark.parametrize("value", [None, True, 7, 2.5, ["2024.10"], {"a": "1"}])
def test_a_parameter_that_is_no_text_keeps_its_type(dag: DAG, value: object) -> None:
    fields = rendered(SqlOperator(task_id="t", sql="SELECT 1", settings="{{ params.value }}"), value=value)

    assert fields["settings"] == value
    assert type(fields["settings"]) is type(value)


@pytest.mark.parametrize("text", [text for text in AWKWARD if text[0] not in "[{" and text != "1,"])
def test_text_that_the_dag_spells_stays_text(dag: DAG, text: str) -> None:
    fields = rendered(ProcessChangesOperator(task_id="t", table=text, process="{% if 1 %}" + text + "{% endif %}"))

    assert (fields["table"], fields["process"]) == (text, text)
    assert rendered(PartitionSensor(task_id="s", table="2024.10", partition={"p": "2013"}))["partition"] == {
        "p": "2013"
    }


def test_a_list_or_a_mapping_may_be_spelled_as_text_by_the_dag(dag: DAG) -> None:
    listed = CompactTableOperator(task_id="t", table="a.b", partition="{'day': '{{ params.day }}'}")
    constant = CompactTableOperator(task_id="u", table="a.b", partition="{{ {'day': '2013'} }}")

    assert rendered(listed, day="2013")["partition"] == {"day": "2013"}
    assert rendered(constant)["partition"] == {"day": "2013"}


def test_text_between_expressions_is_text(dag: DAG) -> None:
    task = ProcessChangesOperator(task_id="t", table="{{ params.year }}.{{ params.month }}", process="")

    assert rendered(task, year="2024", month="10")["table"] == "2024.10"


def test_an_error_of_a_template_names_its_cause(dag: DAG) -> None:
    with pytest.raises(ZeroDivisionError):
        rendered(CompactTableOperator(task_id="t", table="{{ 1 / params.zero }}"), zero=0)


def test_a_dag_that_renders_to_text_is_as_before() -> None:
    with DAG("text", schedule=None):
        task = CompactTableOperator(task_id="t", table="{{ params.text }}", full="{{ params.flag }}")

    assert rendered(task, text="2024.10", flag=False)["full"] == "False"


@pytest.mark.parametrize("seed", thinned(range(40), 4))
def test_text_of_any_letters_stays_as_it_is(dag: DAG, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  seeded
    letters = "0123456789.,_'\"[](){}:+-eExXjNoneTrue \n\\#%"
    for _ in range(50):
        text = "".join(draw.choice(letters) for _ in range(draw.randint(1, 8)))
        task = ProcessChangesOperator(
            task_id=f"t{draw.random()}", table="{{ params.text }}", process="", process_kwargs={"k": "{{params.text}}"}
        )

        fields = rendered(task, text=text)

        assert (fields["table"], fields["process_kwargs"]) == (text, {"k": text}), f"seed {seed}"
