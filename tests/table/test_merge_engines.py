"""Tables with a merge engine: rows of batch reads, changes of streams, refused operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.errors import InvalidInputError
from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, DropColumn, RenameColumn, SetOption
from storage_lib.schema.filter.column_reference import col
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.stream.hybrid_source import HybridSource

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("name", pa.string()), ("at", pa.int32())])
AGGREGATION = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
PARTIAL_UPDATE = {"merge-engine": "partial-update"}
FIRST_ROW = {"merge-engine": "first-row"}
SEQUENCE = {"sequence.field": "at"}


def _table(tmp_path: Path, options: dict[str, str], **more: Any) -> DynamicTable:
    catalog = WarehouseCatalog(str(tmp_path))
    return catalog.create_table("db.t", COLUMNS, primary_key=["id"], options=options, **more)


def _rows(*rows: Sequence[Any]) -> pa.Table:
    """Convert rows of ``(kind, id, n, name, at)`` to Arrow."""
    kinds, *columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)]
    return pa.table([*arrays, pa.array(kinds)], names=[*COLUMNS.names, "_row_kind"])


def _content(table: DynamicTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def _received(stream: HybridSource) -> list[tuple[Any, ...]]:
    polled = stream.poll()
    rows = [] if polled is None else polled.to_pylist()
    return sorted((row["_row_kind"], row["id"], row["n"], row["name"], row["at"]) for row in rows)


ENGINES: dict[str, tuple[dict[str, str], list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    # After ("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1) and then ("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1).
    "aggregation": (
        AGGREGATION,
        [(1, 7, "a", 1), (2, 1, "b", 1), (3, 7, "c", 1)],
        [("+I", 3, 7, "c", 1), ("+U", 1, 7, "a", 1)],
    ),
    "partial-update": (
        PARTIAL_UPDATE,
        [(1, 2, "a", 1), (2, 1, "b", 1), (3, 7, "c", 1)],
        [("+I", 3, 7, "c", 1), ("+U", 1, 2, "a", 1)],
    ),
    "first-row": (
        FIRST_ROW,
        [(1, 5, "a", 3), (2, 1, "b", 1), (3, 7, "c", 1)],
        [("+I", 3, 7, "c", 1)],
    ),
    "sequence.field": (
        SEQUENCE,
        [(1, 5, "a", 3), (2, 1, "b", 1), (3, 7, "c", 1)],
        [("+I", 3, 7, "c", 1)],
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_batches_read_merged_rows_and_streams_hear_of_their_changes(tmp_path: Path, engine: str) -> None:
    options, merged, changes = ENGINES[engine]
    table = _table(tmp_path, options)
    table.append(_rows(("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1)))
    stream = table.stream()
    assert len(_received(stream)) == 2

    table.append(_rows(("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1)))

    assert _content(table) == merged
    assert _received(stream) == changes
    table.compact()
    assert _content(table) == merged
    assert _received(stream) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_one_key_in_one_commit_are_merged_too(tmp_path: Path, engine: str) -> None:
    options, merged, _ = ENGINES[engine]
    table = _table(tmp_path, options)

    table.append(
        _rows(("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1), ("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1)),
    )

    assert _content(table) == merged
    assert sorted(tuple(row.values()) for row in table.to_arrow(columns=["name", "id"]).to_pylist()) == sorted(
        (name, id_) for id_, _, name, _ in merged
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change_tracking", [True, False])
def test_an_overwrite_replaces_what_was_there_and_merges_its_own_rows(
    tmp_path: Path, engine: str, *, change_tracking: bool
) -> None:
    options, merged, _ = ENGINES[engine]
    table = _table(tmp_path, options)
    table.append(_rows(("+I", 1, 100, "z", 100), ("+I", 9, 1, "y", 1)))
    stream = table.stream()
    stream.poll()

    table.overwrite(
        _rows(("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1), ("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1)),
        partition={},
        change_tracking=change_tracking,
    )

    assert _content(table) == merged
    received = _received(stream)
    if change_tracking:
        assert {kind for kind, *_ in received} == {"-D", "+U", "+I"}
        assert sorted(tuple(row) for kind, *row in received if kind != "-D") == merged
    else:
        assert received == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_condition_on_values_is_asked_of_the_merged_row(tmp_path: Path, engine: str) -> None:
    options, merged, _ = ENGINES[engine]
    table = _table(tmp_path, options)
    table.append(_rows(("+I", 1, 5, "a", 3), ("+I", 2, 1, "b", 1)))
    table.append(_rows(("+I", 1, 2, None, 1), ("+I", 3, 7, "c", 1)))

    for value in (2, 5, 7):
        found = table.to_arrow(filter=col("n") == value).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == [row for row in merged if row[1] == value]


def test_a_stream_hears_of_deletions_with_the_merged_row(tmp_path: Path) -> None:
    table = _table(tmp_path, {**PARTIAL_UPDATE, "partial-update.remove-record-on-delete": "true"})
    table.append(_rows(("+I", 1, 5, None, 1)))
    table.append(_rows(("+U", 1, None, "a", None)))
    stream = table.stream()
    stream.poll()

    table.append(_rows(("-D", 1, None, None, None)))
    assert _received(stream) == [("-D", 1, 5, "a", 1)]
    table.append(_rows(("-D", 1, None, None, None), ("+I", 1, None, "new", None)))

    assert _received(stream) == [("+I", 1, None, "new", None)]
    assert _content(table) == [(1, None, "new", None)]
    table.compact()
    assert _content(table) == [(1, None, "new", None)]


@pytest.mark.parametrize("function", ["last_value", "max"])
@pytest.mark.parametrize("compacts", [False, True])
def test_two_retractions_in_one_commit_leave_a_column_that_ignores_retractions(
    tmp_path: Path, function: str, *, compacts: bool
) -> None:
    options = {"fields.name.aggregate-function": function, "fields.name.ignore-retract": "true"}
    table = _table(tmp_path, {**AGGREGATION, **options})

    for rows in [("+I", 1, 10, "b", 0)], [("-U", 1, 1, "x", 0), ("-D", 1, 2, "y", 0)]:
        table.append(_rows(*rows))
        if compacts:
            table.compact(full=True)

    assert [row[:3] for row in _content(table)] == [(1, 7, "b")]


def test_deletions_are_passed_over_where_the_table_says_so(tmp_path: Path) -> None:
    table = _table(tmp_path, {**FIRST_ROW, "first-row.ignore-delete": "true"})

    table.append(_rows(("+I", 1, 5, "a", 1), ("-U", 1, 5, "a", 1), ("+U", 1, 6, "b", 1), ("-D", 2, 1, "x", 1)))

    assert _content(table) == [(1, 5, "a", 1)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"partial-update.remove-record-on-sequence-group": "name"},
            "names 'name', which is not the sequence of a group",
        ),
        ({"partial-update.remove-record-on-sequence-group": "at", "ignore-delete": "true"}, "leave one of them out"),
        (
            {"partial-update.remove-record-on-sequence-group": "at", "fields.n.aggregate-function": "product"},
            "is not supported with product of column 'n'",
        ),
    ],
)
def test_a_removal_by_a_sequence_group_that_can_not_be_is_refused_at_create(
    tmp_path: Path, more: dict[str, str], said: str
) -> None:
    with pytest.raises(
        InvalidInputError, match=f"option partial-update.remove-record-on-sequence-group .*{re.escape(said)}"
    ):
        _table(tmp_path, {**PARTIAL_UPDATE, "fields.at.sequence-group": "n,name", **more})

    assert not list(tmp_path.rglob("schema-*"))


def test_the_sequence_by_which_records_are_removed_may_be_renamed_and_not_dropped(tmp_path: Path) -> None:
    options = {"fields.at.sequence-group": "n,name", "partial-update.remove-record-on-sequence-group": "at"}
    table = _table(tmp_path, {**PARTIAL_UPDATE, **options})
    with pytest.raises(InvalidInputError, match="column 'at' can't be dropped"):
        table.alter(DropColumn("at"))
    table = table.alter(RenameColumn("at", "since"))
    names = ["id", "n", "name", "since", "_row_kind"]

    table.append(_rows(("+I", 1, 1, "a", 1), ("+I", 2, 1, "b", 1)).rename_columns(names))
    table.append(_rows(("-D", 1, None, None, 2), ("-D", 2, None, None, 0)).rename_columns(names))
    assert _content(table) == [(2, 1, "b", 1)]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (FIRST_ROW, ["db.t", "first-row", "ignore-delete"]),
        (PARTIAL_UPDATE, ["db.t", "partial-update", "remove-record-on-delete"]),
        (
            {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"},
            ["db.t", "max", "'n'", "fields.n.ignore-retract=true"],
        ),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "product"}, ["db.t", "0", "'n'"]),
    ],
)
def test_what_an_engine_can_not_take_back_is_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, str], parts: list[str]
) -> None:
    table = _table(tmp_path, options)

    with pytest.raises(InvalidInputError) as refusal:
        table.append(_rows(("+I", 1, 5, "a", 1), ("-D", 1, 0, "a", 1)))

    assert all(part in str(refusal.value) for part in parts)
    assert table.inspect.snapshots().num_rows == 0


def test_a_sum_that_its_column_can_not_hold_is_refused_with_the_remedy(tmp_path: Path) -> None:
    table = _table(tmp_path, AGGREGATION)

    with pytest.raises(InvalidInputError, match=r"db\.t.*sum of column 'n'.*Widen"):
        table.append(_rows(("+I", 1, 2**31 - 1, "a", 1), ("+I", 1, 1, "a", 1)))

    assert table.inspect.snapshots().num_rows == 0


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"merge-engine": "sum"}, ["merge-engine", "'sum'", "aggregation"]),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "median"}, ["median", "'n'", "sum"]),
        ({"merge-engine": "aggregation", "fields.name.aggregate-function": "sum"}, ["sum", "'name'", "STRING"]),
        ({"merge-engine": "aggregation", "fields.m.aggregate-function": "sum"}, ["'m'", "not a column", "name"]),
        ({"merge-engine": "aggregation", "fields.id.aggregate-function": "sum"}, ["'id'", "primary key"]),
        ({"merge-engine": "aggregation", "fields.n.agregate-function": "sum"}, ["agregate", "aggregate-function"]),
        ({"merge-engine": "aggregation", "fields.at.sequence-group": "n"}, ["sequence-group", "partial-update"]),
        (
            {**AGGREGATION, "sequence.field": "at", "fields.at.aggregate-function": "max"},
            ["fields.at.aggregate-function", "sequence.field"],
        ),
        ({"sequence.field": "when"}, ["sequence.field", "'when'", "not a column"]),
        ({"sequence.field": "id"}, ["sequence.field", "'id'", "primary key"]),
        ({"sequence.field": "at,at"}, ["sequence.field", "once"]),
        ({**FIRST_ROW, "sequence.field": "at"}, ["sequence.field", "first-row"]),
        ({**PARTIAL_UPDATE, "fields.n.aggregate-function": "sum"}, ["sum", "'n'", "sequence group"]),
        ({**PARTIAL_UPDATE, "fields.at.sequence-group": "n,at"}, ["'at'", "one group only"]),
        ({**PARTIAL_UPDATE, "fields.at.sequence-group": "id"}, ["'id'", "primary key"]),
        (
            {
                **PARTIAL_UPDATE,
                "fields.at.sequence-group": "n",
                "partial-update.remove-record-on-delete": "true",
            },
            ["remove-record-on-delete", "fields.at.sequence-group"],
        ),
        (
            {**PARTIAL_UPDATE, "partial-update.remove-record-on-sequence-group": "at"},
            ["partial-update.remove-record-on-sequence-group"],
        ),
        ({**AGGREGATION, "log.system": "kafka"}, ["log.system=kafka", "merge-engine=aggregation", "log.system=none"]),
        ({**SEQUENCE, "log.system": "kafka"}, ["log.system=kafka", "sequence.field", "log.system=none"]),
    ],
)
def test_create_refuses_what_would_not_come_out_right(
    tmp_path: Path, options: dict[str, str], parts: list[str]
) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        _table(tmp_path, options)

    assert all(part in str(refusal.value) for part in parts), refusal.value
    assert not WarehouseCatalog(str(tmp_path)).table_exists("db.t")


def test_renamed_and_widened_columns_go_on_being_merged_as_before(tmp_path: Path) -> None:
    options = {
        **PARTIAL_UPDATE,
        "fields.at.sequence-group": "n,name",
        "fields.n.aggregate-function": "sum",
    }
    table = _table(tmp_path, options)
    table.append(_rows(("+I", 1, 2**31 - 1, "a", 3)))

    altered = table.alter(RenameColumn("at", "moment"), RenameColumn("n", "total"), AlterType("total", "BIGINT"))
    altered.append(pa.table({"id": [1], "total": [10], "name": ["b"], "moment": pa.array([2], pa.int32())}))

    assert _content(altered) == [(1, 2**31 + 9, "a", 3)]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (AddColumn("m", "STRING"), ["db.t", "'m'", "fields.default-aggregate-function", "sequence group"]),
        (DropColumn("n"), ["db.t", "'n'", "fields.at.sequence-group"]),
        (SetOption("merge-engine", "first-row"), ["db.t", "merge-engine"]),
        (SetOption("partial-update.remove-record-on-delete", "true"), ["db.t", "remove-record-on-delete"]),
    ],
)
def test_alter_refuses_what_its_engine_could_not_go_on_with(tmp_path: Path, change: Any, parts: list[str]) -> None:
    options = {
        **PARTIAL_UPDATE,
        "fields.at.sequence-group": "n,name",
        "fields.n.aggregate-function": "sum",
        "fields.default-aggregate-function": "last_value",
    }
    table = _table(tmp_path, options)

    with pytest.raises(InvalidInputError) as refusal:
        table.alter(change)

    assert all(part in str(refusal.value) for part in parts), refusal.value


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_a_record_deleted_and_begun_anew_in_one_commit_keeps_nothing_of_the_old_one(
    tmp_path: Path, engine: str
) -> None:
    table = _table(tmp_path, {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"})
    table.append(_rows(("+I", 1, 5, "old", 1)))

    table.append(_rows(("-D", 1, 5, "old", 1), ("+I", 1, None, "new", None)))

    assert _content(table) == [(1, None, "new", None)]
    table.compact()
    assert _content(table) == [(1, None, "new", None)]


def test_a_sum_too_large_for_its_column_stands_in_nobodys_way_until_the_column_is_widened(tmp_path: Path) -> None:
    options = AGGREGATION | {"bucket": "8", "write-only": "true"}
    table = _table(tmp_path, options)
    rows = [("+I", key, 2**31 - 1 if key == 1 else key, "a", 1) for key in range(1, 20)]
    for _ in range(2):
        table.append(_rows(*rows))

    with pytest.raises(InvalidInputError, match=r"the sum of column 'n' is too large for int32.*Widen"):
        table.to_arrow()
    with pytest.raises(InvalidInputError, match="too large"):
        table.compact()

    assert table.to_arrow(columns=["id", "name"]).num_rows == 19
    assert table.to_arrow(filter=col("id") > 1)["n"].to_pylist().count(38) == 1
    assert table.lookup([{"id": 2}])["n"].to_pylist() == [4]
    fresh = table.inspect.files().filter(pc.field("level") == 0)
    assert pc.unique(fresh["bucket"]).to_pylist() == [table.new_read(filter=col("id") == 1).plan().entries[0].bucket]
    table = table.alter(AlterType("n", "BIGINT"))
    table.append(_rows(("+I", 1, 1, "b", 1)))
    table.compact()
    assert table.lookup([{"id": 1}])["n"].to_pylist() == [2**32 - 1]
    assert set(table.inspect.files()["level"].to_pylist()) == {5}


def test_a_stream_goes_on_where_what_it_has_read_was_expired(tmp_path: Path) -> None:
    table = _table(tmp_path, AGGREGATION | {"write-only": "true"})
    table.append(_rows(("+I", 1, 5, "a", 1)))
    stream = table.stream()
    stream.poll()
    table.append(_rows(("+I", 1, 2, "b", 1), ("+I", 2, 1, "c", 1)))
    table.consumers.create("reader", 2)
    table.maintenance.expire_snapshots(retain_last=1)
    position = stream.position

    fresh = WarehouseCatalog(str(tmp_path)).load_table("db.t")

    assert _received(fresh.stream(position=position)) == [("+I", 2, 1, "c", 1), ("+U", 1, 7, "b", 1)]
