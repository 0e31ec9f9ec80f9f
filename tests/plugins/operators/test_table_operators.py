"""The operators pass their arguments on, with one identity, and return small JSON."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset

from dynamic_table.operators.compact_table import CompactTableOperator
from dynamic_table.operators.drop_partitions import DropPartitionsOperator
from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator
from dynamic_table.operators.ingest_topic import IngestOperator
from dynamic_table.operators.list_tables import ListTablesOperator
from dynamic_table.operators.provision_table import ProvisionTableOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.operators.tier_log import TierLogOperator
from dynamic_table.operators.validate_table import DataQualityError, ValidateTableOperator
from dynamic_table.table_events import TABLE_EVENTS, table_asset
from dynamic_table.versions.sdk_exceptions import AirflowSkipException
from storage_lib import open_catalog
from storage_lib.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    NotFoundError,
    SqlSyntaxError,
)
from tests.support.task_context import DictStore, announced, task_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.recording_table import RecordingTable

HERE = f"{__name__}:rows_of"


def rows_of(partition: Mapping[str, str], count: int = 2) -> pa.Table:
    """Return the rows with which the tests reprocess a partition."""
    count = 0 if partition["dt"] == "empty" else count
    return pa.table({"dt": pa.array([partition["dt"]] * count, pa.string()), "v": pa.array(range(count), pa.int64())})


def no_table(partition: Mapping[str, str]) -> dict[str, str]:
    """Return an object that is not a table."""
    return dict(partition)


@pytest.fixture(autouse=True)
def _this_module_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _module())


def _module() -> Any:
    return SimpleNamespace(rows_of=rows_of, no_table=no_table)


def test_compaction_answers_with_its_snapshot_and_announces_it(table: RecordingTable) -> None:
    task = CompactTableOperator(task_id="compact", table="db.t", partition={"dt": "a"}, full=False)
    context = task_context(task)

    result = task.execute(context)

    [(verb, arguments)] = table.calls
    assert (verb, arguments["partition"], arguments["full"]) == ("compact", {"dt": "a"}, False)
    assert arguments["commit_user"] == "airflow/dag/run/compact/-1"
    assert result == {"table": "db.t", "version": 1, "op": "compact", "partitions": [{"dt": "a"}]}
    assert announced(context) == [
        {"uri": "dynamic-table://db/t", "version": 1, "op": "compact", "partitions": [{"dt": "a"}]}
    ]
    assert json.loads(json.dumps(result)) == result


def test_compaction_with_nothing_to_do_announces_nothing(table: RecordingTable) -> None:
    table.nothing_to_do = True
    task = CompactTableOperator(task_id="compact", table="db.t")
    context = task_context(task)

    assert task.execute(context)["version"] is None
    assert announced(context) == []


def test_tiering_answers_with_its_snapshot_and_announces_it(table: RecordingTable) -> None:
    task = TierLogOperator(task_id="tier", table="db.t", compact="false")
    context = task_context(task)

    result = task.execute(context)

    [(verb, arguments)] = table.calls
    assert (verb, arguments["compact"]) == ("tier_log", False)
    assert arguments["commit_user"] == "airflow/dag/run/tier/-1"
    assert result == {"table": "db.t", "version": 1, "op": "tier_log", "partitions": []}
    assert [event["op"] for event in announced(context)] == ["tier_log"]


def test_tiering_a_log_whose_files_are_up_to_it_announces_nothing(table: RecordingTable) -> None:
    table.nothing_to_do = True
    context = task_context(task := TierLogOperator(task_id="tier", table="db.t"))

    assert task.execute(context)["version"] is None
    assert announced(context) == []


def test_an_ingest_reads_with_the_connections_options_and_announces_its_last_snapshot(
    table: RecordingTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[Any, ...]] = []

    def ingest(*arguments: Any, **named: Any) -> SimpleNamespace:
        calls.append((*arguments, named))
        snapshot = SimpleNamespace(id=7) if len(calls) == 1 else None
        return SimpleNamespace(snapshot=snapshot, row_count=2 - len(calls), rejected_count=3, skipped_count=0)

    monkeypatch.setattr("storage_lib.ingest", ingest)
    servers = {"log.kafka.bootstrap.servers": "kafka:9092"}
    monkeypatch.setattr("dynamic_table.hook.DynamicTableHook.options", servers)
    monkeypatch.setattr("dynamic_table.hook.DynamicTableHook.secret_keys", frozenset())
    task = IngestOperator(
        task_id="ingest", table="db.t", topic="cdc", options={"log.kafka.client.id": "x"}, timestamp_millis="5"
    )
    context = task_context(task)

    results = [task.execute(context), task.execute(context)]

    assert results == [
        {"table": "db.t", "version": 7, "op": "ingest", "partitions": [], "rows": 1, "rejected": 3, "skipped": 0},
        {"table": "db.t", "version": None, "op": "ingest", "partitions": [], "rows": 0, "rejected": 3, "skipped": 0},
    ]
    assert [event["version"] for event in announced(context)] == [7]
    opened, named = calls[0]
    assert (opened, named["topic"], named["format"], named["startup"]) == (table, "cdc", "debezium-json", "full")
    assert named["options"] == {**servers, "log.kafka.client.id": "x"}
    assert named["timestamp"] == 5
    assert named["skip_expired"] is False
    assert "3 records of cdc do not fit table db.t and were kept in" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names
def test_an_ingest_refuses_rows_by_the_expectations_of_a_file(
    table: RecordingTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found: list[Any] = []

    def ingest(*_: object, expect: object, **__: object) -> SimpleNamespace:
        found.append(expect)
        return SimpleNamespace(snapshot=None, row_count=0, rejected_count=0, skipped_count=0)

    monkeypatch.setattr("storage_lib.ingest", ingest)
    monkeypatch.setattr("dynamic_table.operators.ingest_topic.last_of_source", lambda *_: None)
    monkeypatch.setattr("dynamic_table.hook.DynamicTableHook.options", {})
    monkeypatch.setattr("dynamic_table.hook.DynamicTableHook.secret_keys", frozenset())
    (tmp_path / "sold.yaml").write_text(
        "- {type: expect_column_values_to_be_between, kwargs: {column: price, min_value: 0}, severity: reject}\n"
    )
    task = IngestOperator(task_id="ingest", table=table.name, topic="cdc", expectations="sold.yaml")

    task.execute(task_context(task, folder=tmp_path))

    assert [*found[0](pa.table({"price": [1, -1]}))] == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": "None"}, "topic is 'None'"),
        ({"options": "{'a': 'b'}"}, "options is \"{'a': 'b'}\""),
        ({"source": 3}, "source is 3"),
        ({"startup": None}, "startup is None"),
        ({"timestamp_millis": "noon"}, "timestamp_millis is 'noon'"),
        (
            {"expectations": [{"type": "expect_column_values_to_be_null", "kwargs": {"column": "id"}}]},
            "none of the expectations has severity reject",
        ),
        ({"expectations": [{"type": "expect_query", "severity": "reject"}]}, "is not allowed from a form"),
    ],
)
@pytest.mark.usefixtures("table")
def test_what_a_template_made_of_an_ingest_is_refused_by_its_name(arguments: dict[str, Any], message: str) -> None:
    task = IngestOperator(task_id="ingest", table="db.t", **{"topic": "cdc", **arguments})

    with pytest.raises(InvalidInputError, match=re.escape(message)):
        task.execute(task_context(task))


def test_a_declared_asset_gets_the_event_instead_of_the_alias(table: RecordingTable) -> None:
    asset = Asset(name="db.t", uri="dynamic-table://db/t")
    task = CompactTableOperator(task_id="compact", table="db.t", outlets=[asset])
    context = task_context(task)

    task.execute(context)

    assert announced(context) == []
    assert context["outlet_events"][table_asset("db.t")].extra["version"] == 1


def test_the_alias_is_an_outlet_once_also_if_a_mapped_task_names_it() -> None:
    task = CompactTableOperator(task_id="compact", table="db.t", outlets=[TABLE_EVENTS])

    assert task.outlets == [TABLE_EVENTS]


@pytest.mark.parametrize("failure", [CommitConflictError("lost"), CommitOutcomeUnknownError("no answer")])
def test_a_failed_commit_is_repeated_under_the_same_identity(table: RecordingTable, failure: Exception) -> None:
    table.failures = [failure]
    task, store = CompactTableOperator(task_id="compact", table="db.t"), DictStore()

    with pytest.raises(type(failure)):
        task.execute(task_context(task, store=store))
    task.execute(task_context(task, store=store))

    first, second = (arguments for _, arguments in table.calls)
    assert first == second


def test_partitions_are_dropped_untracked_unless_told_otherwise(table: RecordingTable) -> None:
    named = DropPartitionsOperator(task_id="drop", table="db.t", partitions=[{"dt": "a"}])
    tracked = DropPartitionsOperator(task_id="drop", table="db.t", partitions=[{"dt": "a"}], change_tracking=True)

    named.execute(task_context(named))
    tracked.execute(task_context(tracked))

    assert [arguments["change_tracking"] for _, arguments in table.calls] == [False, True]
    assert [arguments["partitions"] for _, arguments in table.calls] == [[{"dt": "a"}], [{"dt": "a"}]]


def test_partitions_before_a_value_are_dropped_in_one_commit(table: RecordingTable) -> None:
    task = DropPartitionsOperator(task_id="drop", table="db.t", before={"dt": "b"})

    result = task.execute(task_context(task))

    assert [arguments["partitions"] for _, arguments in table.calls] == [[{"dt": "a"}]]
    assert result["partitions"] == [{"dt": "a"}]


def test_named_partitions_are_dropped_under_the_tasks_identity_even_if_the_form_has_a_limit_too(
    table: RecordingTable,
) -> None:
    task = DropPartitionsOperator(task_id="drop", table="db.t", partitions=[{"dt": "b"}], before={"dt": "b"})

    task.execute(task_context(task))

    [(_, arguments)] = table.calls
    assert arguments["partitions"] == [{"dt": "b"}]
    assert arguments["commit_user"] == "airflow/dag/run/drop/-1"
    assert arguments["commit_identifier"] > 0


def test_nothing_old_enough_is_not_an_error(table: RecordingTable) -> None:
    task = DropPartitionsOperator(task_id="drop", table="db.t", before={"dt": "a"})

    assert task.execute(task_context(task))["version"] is None
    assert table.calls == []


def test_a_limit_on_two_columns_is_refused(table: RecordingTable) -> None:
    task = DropPartitionsOperator(task_id="drop", table="db.t", before={"dt": "b", "v": "1"})

    with pytest.raises(InvalidInputError, match="one partition column"):
        task.execute(task_context(task))
    assert table.calls == []


def test_flags_rendered_to_text_mean_what_they_say(table: RecordingTable) -> None:
    drop = DropPartitionsOperator(task_id="drop", table="db.t", partitions=[{"dt": "a"}], change_tracking="False")
    compact = CompactTableOperator(task_id="compact", table="db.t", full="False")

    drop.execute(task_context(drop))
    compact.execute(task_context(compact))

    (_, dropped), (_, compacted) = table.calls
    assert (dropped["change_tracking"], compacted["full"]) == (False, False)


@pytest.mark.usefixtures("warehouse")
def test_the_tables_of_one_database_are_listed_sorted() -> None:
    for name in ("shop.b", "shop.a", "other.c"):
        provision = ProvisionTableOperator(task_id="p", table=name, columns={"id": "BIGINT"}, primary_key=["id"])
        provision.execute(task_context(provision))
    all_of_them = ListTablesOperator(task_id="list")
    of_one = ListTablesOperator(task_id="list", database="shop")

    assert all_of_them.execute(task_context(all_of_them)) == ["other.c", "shop.a", "shop.b"]
    assert of_one.execute(task_context(of_one)) == ["shop.a", "shop.b"]


def test_tables_named_as_text_are_not_taken_for_letters() -> None:
    named = ListTablesOperator(task_id="list", tables=["db.b", "db.a", "db.b"])
    text = ListTablesOperator(task_id="list", tables="db.a")

    assert named.execute(task_context(named)) == ["db.a", "db.b"]
    with pytest.raises(InvalidInputError, match=r"tables is 'db\.a'"):
        text.execute(task_context(text))


@pytest.mark.parametrize("before", [None, {"dt": "b"}])
def test_an_empty_list_of_partitions_is_refused_and_drops_none_by_their_age(
    table: RecordingTable, before: dict[str, str] | None
) -> None:
    task = DropPartitionsOperator(task_id="drop", table="db.t", partitions=[], before=before)

    with pytest.raises(InvalidInputError):
        task.execute(task_context(task))
    assert table.calls == []


def test_what_was_approved_is_dropped_as_it_was_shown_a_null_included(table: RecordingTable) -> None:
    approved: list[dict[str, str | None]] = [{"dt": "a"}, {"dt": None}]
    task = DropPartitionsOperator(task_id="drop", table="db.t", approved=approved, before={"dt": "z"})

    assert task.execute(task_context(task))["partitions"] == approved
    assert table.calls[0][1]["partitions"] == approved


def test_a_column_that_is_no_partition_column_is_refused_before_the_source_is_asked(table: RecordingTable) -> None:
    task = ReprocessPartitionsOperator(
        task_id="reprocess", table="db.t", partitions=[{"day": "a"}], rows=f"{__name__}:must_not_be_asked"
    )

    with pytest.raises(InvalidInputError, match=r"db\.t is partitioned by \['dt'\], not by 'day'"):
        task.execute(task_context(task))
    assert table.calls == []


def must_not_be_asked(partition: dict[str, str]) -> None:
    raise AssertionError(partition)


def test_partitions_are_reprocessed_one_commit_each_untracked(table: RecordingTable) -> None:
    task = ReprocessPartitionsOperator(
        task_id="reprocess", table="db.t", partitions=[{"dt": "a"}, {"dt": "b"}], rows=HERE, rows_kwargs={"count": 3}
    )

    result = task.execute(task_context(task))

    assert [verb for verb, _ in table.calls] == ["overwrite", "overwrite"]
    assert [arguments["partition"] for _, arguments in table.calls] == [{"dt": "a"}, {"dt": "b"}]
    assert not any(arguments["change_tracking"] for _, arguments in table.calls)
    assert len({arguments["commit_identifier"] for _, arguments in table.calls}) == 2
    assert (result["version"], result["rows"]) == (2, 6)


def test_the_answer_is_the_last_snapshot_that_was_made(table: RecordingTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing a partition with its own rows creates no snapshot."""
    made = iter([SimpleNamespace(id=4), None])
    monkeypatch.setattr(table, "overwrite", lambda *_, **__: next(made))
    task = ReprocessPartitionsOperator(
        task_id="reprocess", table="db.t", partitions=[{"dt": "a"}, {"dt": "b"}], rows=HERE
    )

    assert task.execute(task_context(task))["version"] == 4


def test_a_run_without_partition_key_touches_nothing(table: RecordingTable) -> None:
    task = ReprocessPartitionsOperator(task_id="reprocess", table="db.t", partitions=[{"dt": "None"}], rows=HERE)

    with pytest.raises(InvalidInputError, match="partition key"):
        task.execute(task_context(task))
    assert table.calls == []


def test_a_source_without_rows_does_not_empty_a_partition(table: RecordingTable) -> None:
    arguments: dict[str, Any] = {
        "table": "db.t",
        "partitions": [{"dt": "a"}],
        "rows": HERE,
        "rows_kwargs": {"count": 0},
    }
    careful = ReprocessPartitionsOperator(task_id="reprocess", **arguments)
    tolerant = ReprocessPartitionsOperator(task_id="reprocess", on_empty="skip", **arguments)
    bold = ReprocessPartitionsOperator(task_id="reprocess", on_empty="clear", **arguments)

    with pytest.raises(InvalidInputError, match="dt=a of db\\.t"):
        careful.execute(task_context(careful))
    with pytest.raises(AirflowSkipException, match=r"dt=a of db\.t"):
        tolerant.execute(task_context(tolerant))
    assert table.calls == []
    assert bold.execute(task_context(bold))["rows"] == 0


def test_partitions_without_rows_are_skipped_and_the_others_replaced(table: RecordingTable) -> None:
    task = ReprocessPartitionsOperator(
        task_id="reprocess",
        table="db.t",
        partitions=[{"dt": "a"}, {"dt": "empty"}, {"dt": "b"}],
        rows=HERE,
        on_empty="skip",
    )
    context = task_context(task)

    result = task.execute(context)

    assert [arguments["partition"] for _, arguments in table.calls] == [{"dt": "a"}, {"dt": "b"}]
    assert result["partitions"] == [{"dt": "a"}, {"dt": "b"}]
    assert [event["partitions"] for event in announced(context)] == [[{"dt": "a"}, {"dt": "b"}]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": f"{__name__}:no_table"}, "returned a dict; it has to return a pyarrow.Table"),
        ({"rows": ".flights:rows"}, "is not a callable's path"),
        ({"on_empty": "ignore"}, "on_empty is 'ignore'"),
        ({"rows_kwargs": "{}"}, "rows_kwargs is '{}'"),
        ({"change_tracking": "maybe"}, "change_tracking is 'maybe'"),
        ({"partitions": "[{'dt': 'a'}]"}, "render_template_as_native_obj"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_replaced(
    table: RecordingTable, arguments: dict[str, Any], message: str
) -> None:
    wrong = {"table": "db.t", "partitions": [{"dt": "a"}], "rows": HERE} | arguments
    task = ReprocessPartitionsOperator(task_id="reprocess", **wrong)

    with pytest.raises(InvalidInputError, match=re.escape(message)):
        task.execute(task_context(task))
    assert table.calls == []


@pytest.mark.parametrize("path", ["rows_of", "no.such.module:rows_of", f"{__name__}:missing", ":", ""])
def test_a_wrong_path_of_the_source_is_an_input_error(table: RecordingTable, path: str) -> None:
    task = ReprocessPartitionsOperator(task_id="reprocess", table="db.t", partitions=[{"dt": "a"}], rows=path)

    with pytest.raises(InvalidInputError):
        task.execute(task_context(task))


def test_expiry_counts_hours_back_from_now(table: RecordingTable) -> None:
    before = time.time() * 1000
    task = ExpireSnapshotsOperator(task_id="expire", table="db.t", retain_last="5", older_than_hours="0.5")

    result = task.execute(task_context(task))

    [(_, arguments)] = table.calls
    assert arguments["retain_last"] == 5
    assert -1 <= arguments["older_than_millis"] - (before - 1_800_000) < 60_000
    assert result == {
        "table": "db.t", "op": "expire", "snapshots": 2, "data_files": 3, "tags": [], "branches": []
    }  # fmt: skip


def test_expiry_by_count_alone_names_no_time(table: RecordingTable) -> None:
    task = ExpireSnapshotsOperator(task_id="expire", table="db.t")

    task.execute(task_context(task))

    assert table.calls == [("expire_snapshots", {"retain_last": 10, "older_than_millis": None})]


def test_expiry_keeps_at_least_one_snapshot(table: RecordingTable) -> None:
    task = ExpireSnapshotsOperator(task_id="expire", table="db.t", retain_last=0)

    with pytest.raises(InvalidInputError, match="retain_last is 0; it has to be a number of at least 1"):
        task.execute(task_context(task))
    assert table.calls == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Great Expectations imports deprecated names
@pytest.mark.usefixtures("warehouse")
def test_a_critical_expectation_fails_with_a_readable_list(table: RecordingTable) -> None:
    wrong = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "v", "min_value": 2}}
    task = ValidateTableOperator(task_id="validate", table="db.t", expectations=[wrong])

    with pytest.raises(DataQualityError, match=r"db\.t at snapshot 7 .*\n\[critical\] .*1 of 2 rows, for example 1"):
        task.execute(task_context(task))
    [(_, arguments)] = table.calls
    assert arguments["snapshot_id"] == 7


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as above
@pytest.mark.usefixtures("warehouse")
def test_a_warning_passes_with_its_count(table: RecordingTable) -> None:
    wrong = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "v", "min_value": 2},
        "severity": "warning",
    }
    task = ValidateTableOperator(task_id="validate", table="db.t", expectations=[wrong])
    context = task_context(task)

    result = task.execute(context)

    assert result["failed"] == {"critical": 0, "warning": 1, "info": 0}
    assert (result["rows"], result["checked"], result["version"]) == (2, 1, 7)
    [event] = announced(context)
    assert (event["uri"], event["op"]) == ("dynamic-table://db/t/quality", "validate")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as above
@pytest.mark.usefixtures("warehouse")
def test_a_table_that_is_empty_passes_with_a_word_about_it(
    table: RecordingTable, capsys: pytest.CaptureFixture[str]
) -> None:
    table.rows = table.rows.slice(0, 0)
    expected = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "v"}}
    task = ValidateTableOperator(task_id="validate", table="db.t", expectations=[expected])

    assert task.execute(task_context(task))["rows"] == 0
    assert "db.t is empty: all expectations of its values are met" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as above
@pytest.mark.usefixtures("warehouse")
def test_validation_reads_the_named_partition_at_the_named_snapshot(table: RecordingTable) -> None:
    expectation = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "v"}}
    task = ValidateTableOperator(
        task_id="validate",
        table="db.t",
        expectations=[expectation],
        partition={"dt": "a"},
        columns=["v"],
        snapshot_id="3",
    )

    result = task.execute(task_context(task))

    [(_, arguments)] = table.calls
    assert arguments["filter"] is not None
    assert arguments["columns"] == ("v",)
    assert result["partitions"] == [{"dt": "a"}]
    assert (arguments["snapshot_id"], result["version"]) == (3, 3)


def test_a_partition_without_rows_is_no_partition_that_passes(table: RecordingTable) -> None:
    """Nearly every expectation holds for an empty table."""
    table.rows = table.rows.slice(0, 0)
    expectation = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "v"}}
    missing = ValidateTableOperator(
        task_id="validate", table="db.t", expectations=[expectation], partition={"dt": "2013-13-13"}
    )
    wrong = ValidateTableOperator(task_id="validate", table="db.t", expectations=[expectation], partition={"v": "1"})

    with pytest.raises(NotFoundError, match="no rows in dt=2013-13-13 at snapshot 7"):
        missing.execute(task_context(missing))
    with pytest.raises(InvalidInputError, match="not by 'v'"):
        wrong.execute(task_context(wrong))


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    "arguments",
    [
        {"table": None},
        {"table": ""},
        {"table": "orders"},
        {"columns": {}},
        {"columns": "{'id': 'BIGINT'}"},
        {"columns": {"id": None}},
        {"columns": {"id": "NUMBER"}},
        {"primary_key": "id"},
        {"primary_key": ["no_such_column"]},
        {"partition_by": ["no_such_column"]},
        {"options": {"bucket": None}},
        {"options": {"bucket": "many"}},
    ],
)
def test_a_wrong_table_is_refused_and_none_is_made(warehouse: Path, arguments: dict[str, Any]) -> None:
    right: dict[str, Any] = {"table": "shop.orders", "columns": {"id": "BIGINT"}, "primary_key": ["id"]}
    task = ProvisionTableOperator(task_id="provision", **(right | arguments))

    with pytest.raises(InvalidInputError):
        task.execute(task_context(task))
    assert not list(warehouse.rglob("schema-*"))


def test_a_table_is_provisioned_once_and_announced_once(warehouse: Path) -> None:
    task = ProvisionTableOperator(
        task_id="provision",
        table="shop.orders",
        columns={"dt": "DATE", "id": "BIGINT", "price": "DECIMAL(10, 2)"},
        primary_key=["dt", "id"],
        partition_by=["dt"],
    )
    first, second = task_context(task), task_context(task)

    result, again = task.execute(first), task.execute(second)

    assert (result["version"], again["version"]) == (0, None)
    assert result["columns"] == again["columns"] == ["dt", "id", "price"]
    assert result["location"].startswith(str(warehouse))
    assert [event["uri"] for event in announced(first)] == ["dynamic-table://shop/orders"]
    assert announced(second) == []


def test_a_table_is_made_with_what_the_form_says_of_it(warehouse: Path) -> None:
    task = ProvisionTableOperator(
        task_id="provision",
        table="shop.orders",
        columns={"id": "BIGINT NOT NULL", "price": "DOUBLE NOT NULL", "note": "STRING"},
        primary_key=["id"],
        comment="what was sold",
    )

    task.execute(task_context(task))

    schema = open_catalog(str(warehouse)).load_table("shop.orders").schema
    assert [field.type.nullable for field in schema.fields] == [False, False, True]
    assert schema.comment == "what was sold"


ORDERS_DDL = """
    CREATE TABLE IF NOT EXISTS orders (
      id BIGINT COMMENT 'ours', at TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED,
      WATERMARK FOR at AS at - INTERVAL '5' SECOND
    ) COMMENT 'what was sold' WITH ('bucket' = '4')
"""


def test_a_statement_declares_a_table_as_well(warehouse: Path) -> None:
    task = ProvisionTableOperator(task_id="provision", table="shop.orders", ddl=ORDERS_DDL)

    made, again = task.execute(task_context(task)), task.execute(task_context(task))

    schema = open_catalog(str(warehouse)).load_table("shop.orders").schema
    assert (made["version"], again["version"], again["drift"]) == (0, None, [])
    assert (schema.primary_keys, schema.comment, schema.fields[0].description) == (("id",), "what was sold", "ours")
    assert (schema.options["bucket"], schema.options["watermark.at"]) == ("4", "5 SECOND")
    other = ProvisionTableOperator(
        task_id="provision", table="shop.orders", ddl=ORDERS_DDL.replace("at TIMESTAMP(3)", "at TIMESTAMP(6)")
    )
    with pytest.raises(AlreadyExistsError, match=r"column at: .*TIMESTAMP\(6\)"):
        other.execute(task_context(other))


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"columns": {"id": "BIGINT"}}, "columns and ddl can't be given together"),
        ({"comment": "sold"}, "comment and ddl can't be given together"),
        ({"table": "shop.others"}, r"ddl creates orders, but the task's table is shop\.others"),
        ({"ddl": "CREATE TABLE web.orders (id BIGINT)"}, r"ddl creates web\.orders"),
        ({"ddl": "DROP TABLE orders"}, "not a table declaration; write one CREATE TABLE"),
        ({"ddl": "CREATE TABLE orders (id BIGINT"}, "line 1, column 31"),
        ({"ddl": "CREATE TABLE orders AS SELECT 1 AS id"}, "can't have AS SELECT"),
        ({"ddl": "CREATE TABLE orders (id BIGINT, twice AS (id * 2))"}, "can't have a computed column"),
        ({"ddl": "CREATE TABLE orders (id BIGINT, WATERMARK FOR id AS id)"}, "WATERMARK FOR id: that column is BIGINT"),
        ({"ddl": "CREATE TABLE orders (id BIGINT) WITH ('connector' = 'parquet')"}, "can't have 'connector'"),
    ],
)
def test_a_statement_that_does_not_declare_the_table_is_refused(
    warehouse: Path, arguments: dict[str, Any], refusal: str
) -> None:
    task = ProvisionTableOperator(**{"task_id": "p", "table": "shop.orders", "ddl": ORDERS_DDL, **arguments})

    with pytest.raises((InvalidInputError, SqlSyntaxError), match=refusal):
        task.execute(task_context(task))
    assert not list(warehouse.rglob("schema-*"))


@pytest.mark.usefixtures("warehouse")
def test_a_table_that_is_there_with_other_columns_is_refused() -> None:
    arguments: dict[str, Any] = {"task_id": "provision", "table": "shop.orders", "primary_key": ["id"]}
    first = ProvisionTableOperator(columns={"id": "BIGINT"}, **arguments)
    other = ProvisionTableOperator(columns={"id": "BIGINT", "price": "DOUBLE"}, **arguments)
    first.execute(task_context(first))

    with pytest.raises(AlreadyExistsError, match="column price: not in the table, declared as DOUBLE"):
        other.execute(task_context(other))


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (ProvisionTableOperator, {"table": "t", "columns": "c", "options": "o"}),
        (CompactTableOperator, {"table": "t", "partition": "p"}),
        (DropPartitionsOperator, {"table": "t", "partitions": "p"}),
        (ReprocessPartitionsOperator, {"table": "t", "partitions": "p", "rows": "r"}),
        (ExpireSnapshotsOperator, {"table": "t", "retain_last": "1"}),
        (ValidateTableOperator, {"table": "t", "expectations": "e"}),
        (StreamSinkOperator, {"table": "t", "source": "s"}),
    ],
)
def test_what_a_form_may_say_is_templated(operator: Any, arguments: dict[str, Any]) -> None:
    templates = {name: f"{{{{ params.{name} }}}}" for name in arguments}
    task = operator(task_id="task", **templates)

    task.render_template_fields({"params": arguments})

    assert {name: getattr(task, name) for name in arguments} == arguments
