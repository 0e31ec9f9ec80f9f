"""Tables and columns that ``create_auto_cdc_flow`` refuses; ``tests/spark/test_pipelines.py`` runs a flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import DynamicTable, InvalidInputError, SetOption, open_catalog
from storage_lib.spark import create_auto_cdc_flow
from storage_lib.spark.verbs.auto_cdc import _columns
from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.spark_features import needs_spark

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int64())])
ORDERED = {"sequence.field": "version"}


def table_of(path: Path, options: dict[str, str], key: list[str] | None = None) -> DynamicTable:
    return open_catalog(str(path)).create_table("db.t", COLUMNS, primary_key=key or ["id"], options=options)


def define(table: DynamicTable, **arguments: Any) -> None:
    create_auto_cdc_flow(table, **{"source": "events", "keys": ["id"], "sequence_by": "version", **arguments})


@needs_spark(SparkFeature.PIPELINES)
@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        (ORDERED, {"keys": ["name"]}, r"primary key is \(id\)"),
        ({}, {}, "sequence.field=<column>"),
        ({**ORDERED, "merge-engine": "partial-update"}, {}, "merge-engine=deduplicate"),
        ({**ORDERED, "sequence.field.sort-order": "descending"}, {}, "oldest"),
        ({**ORDERED, "ignore-delete": "true"}, {"apply_as_deletes": "true"}, "ignore-delete"),
        (ORDERED, {"apply_as_deletes": "true"}, "compaction.keep-deletes=true"),
        (ORDERED, {"stored_as_scd_type": "2"}, "stored_as_scd_type '2'"),
        (ORDERED, {"column_list": ["id"], "except_column_list": ["name"]}, "exclude each other"),
        (ORDERED, {"column_list": ["id", "nam"]}, "no column 'nam'"),
        (ORDERED, {"except_column_list": ["version"]}, "needs 'version'"),
    ],
)
def test_a_flow_whose_table_could_become_wrong_is_refused_before_it_is_defined(
    tmp_path: Path, options: dict[str, str], arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        define(table_of(tmp_path, options), **arguments)


@needs_spark(SparkFeature.PIPELINES)
def test_the_refusal_of_deletions_names_a_remedy_that_works(tmp_path: Path) -> None:
    table = table_of(tmp_path, ORDERED).alter(SetOption("compaction.keep-deletes", "true"))

    # Refused only because no pipeline runs here.
    with pytest.raises(Exception, match="GRAPH_ELEMENT_DEFINED_OUTSIDE_OF_DECLARATIVE_PIPELINE"):
        define(table, apply_as_deletes="true")


def test_the_key_and_the_sequence_are_written_with_any_list_of_columns(tmp_path: Path) -> None:
    table = table_of(tmp_path, ORDERED)

    assert _columns(table, None, None) == ["id", "name", "version"]
    assert _columns(table, ["name"], None) == ["id", "name", "version"]
    assert _columns(table, ["id"], None) == ["id", "version"]
    assert _columns(table, None, ["name"]) == ["id", "version"]
