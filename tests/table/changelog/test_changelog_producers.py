"""Tables with a changelog producer, shared with Paimon's Java core: both see the same rows and stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib import DynamicTable, InvalidInputError, RemoveOption, SetOption, StreamPosition, WarehouseCatalog
from storage_lib.schema.types.row_kind import RowKind
from tests.support.deep_tests import thinned
from tests.support.paimon_core import PaimonCore
from tests.support.random_life import Life
from tests.support.shared_table import Row, SharedTable

ADD, DELETE = RowKind.INSERT, RowKind.DELETE
BEFORE, AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
GROUP = {
    "merge-engine": "partial-update",
    "fields.g.sequence-group": "n",
    "fields.n.aggregate-function": "sum",
}
COLUMNS = {"k": "INT NOT NULL", "g": "INT", "n": "INT"}


@pytest.mark.parametrize("engine", [SUM, GROUP], ids=["aggregation", "sequence group"])
def test_what_java_has_merged_above_level_0_is_not_counted_again(
    paimon_core: PaimonCore, tmp_path: Path, engine: dict[str, str]
) -> None:
    table = SharedTable.made_by_java(paimon_core, tmp_path, COLUMNS, {**engine, "changelog-producer": "lookup"})
    table.append_by_java([(ADD, (1, 1, 1))])
    table.append_by_java([(ADD, (1, 2, 10))])

    assert table.rows_by_us() == [(1, 2, 11)]
    table.ours().compact()
    assert table.rows_by_us() == table.rows_by_java() == [(1, 2, 11)]


@pytest.mark.parametrize("engine", [SUM, GROUP], ids=["aggregation", "sequence group"])
def test_what_we_leave_above_level_0_holds_what_lies_below_it(
    paimon_core: PaimonCore, tmp_path: Path, engine: dict[str, str]
) -> None:
    table = SharedTable.made_by_java(paimon_core, tmp_path, COLUMNS, {**engine, "changelog-producer": "lookup"})
    table.append_by_java([(ADD, (key, 0, 800)) for key in range(100)])
    table.append_by_us([(ADD, (1, 1, 1))])

    assert {file["level"] for file in table.ours().inspect.files().to_pylist()} == {4, 5}
    assert (1, 1, 801) in table.rows_by_java()
    assert table.rows_by_java() == table.rows_by_us() == table.rows_of_stream()


def test_the_changelog_of_a_commit_is_in_the_compaction_that_follows_it(
    paimon_core: PaimonCore, tmp_path: Path
) -> None:
    table = SharedTable.made_by_us(paimon_core, tmp_path, COLUMNS, {"changelog-producer": "lookup"})
    table.append_by_us([(ADD, (1, 0, 1)), (ADD, (2, 0, 1))])
    table.append_by_us([(ADD, (1, 0, 2)), (DELETE, (2, 0, 1)), (DELETE, (3, 0, 1))])

    assert table.stream_by_java() == [
        (ADD, (1, 0, 1)),
        (ADD, (2, 0, 1)),
        (BEFORE, (1, 0, 1)),
        (AFTER, (1, 0, 2)),
        (DELETE, (2, 0, 1)),
    ]
    snapshots = table.ours().inspect.system_table("snapshots").to_pylist()
    assert [each["changelog_record_count"] for each in snapshots] == [None, 2, None, 3]


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_a_deletion_tells_their_streams_the_stored_row_and_ours_the_row_it_gave(
    paimon_core: PaimonCore, tmp_path: Path, producer: str
) -> None:
    by_us, by_java = (
        make(paimon_core, tmp_path / name, COLUMNS, {"changelog-producer": producer})
        for name, make in (("us", SharedTable.made_by_us), ("java", SharedTable.made_by_java))
    )
    for change in ((ADD, (2, 0, 1)), (DELETE, (2, 8, 9))):
        by_us.append_by_us([change])
        by_java.append_by_java([change])
        by_java.compact_by_java()

    assert by_us.stream_by_java() == by_java.stream_by_java() == [(ADD, (2, 0, 1)), (DELETE, (2, 0, 1))]
    assert _streamed(by_us.ours(), "none") == [(2, 0, 1, "+I"), (2, 8, 9, "-D")]
    assert _streamed(by_us.ours(), "lookup") == [(2, 0, 1, "+I"), (2, 0, 1, "-D")]


def test_rows_go_into_the_changelog_as_they_are_written(paimon_core: PaimonCore, tmp_path: Path) -> None:
    table = SharedTable.made_by_us(paimon_core, tmp_path, COLUMNS, {"changelog-producer": "input"})
    changes = [(ADD, (1, 0, 1)), (BEFORE, (1, 0, 1)), (AFTER, (1, 0, 2)), (ADD, (2, 0, 0)), (DELETE, (2, 0, 0))]
    table.append_by_us(changes)

    assert table.stream_by_java() == changes
    assert table.rows_by_java() == table.rows_by_us() == [(1, 0, 2)]


def test_updates_that_change_nothing_may_be_left_out(paimon_core: PaimonCore, tmp_path: Path) -> None:
    for number, producer in enumerate(("lookup", "full-compaction")):
        options = {"changelog-producer": producer, "changelog-producer.row-deduplicate": "true"}
        table = SharedTable.made_by_us(paimon_core, tmp_path / str(number), COLUMNS, options)
        rows: list[Row] = [(1, None, 1), (2, 0, 1)]
        table.append_by_us([(ADD, row) for row in rows])
        table.append_by_us([(ADD, (1, None, 1)), (ADD, (2, None, 1))])

        assert table.stream_by_java() == [
            *((ADD, row) for row in rows),
            (BEFORE, (2, 0, 1)),
            (AFTER, (2, None, 1)),
        ]


@pytest.mark.parametrize("producer", ["lookup", "input", "full-compaction"])
def test_a_table_can_be_given_a_producer(paimon_core: PaimonCore, tmp_path: Path, producer: str) -> None:
    table = SharedTable.made_by_us(paimon_core, tmp_path, COLUMNS, {})
    table.append_by_us([(ADD, (1, 0, 1)), (ADD, (2, 0, 2))])
    table.append_by_us([(ADD, (2, 0, 3))])
    table.ours().compact()
    table.ours().alter(SetOption("changelog-producer", producer))
    table.append_by_us([(ADD, (2, 0, 4)), (ADD, (3, 0, 3))])

    new = [(ADD, (2, 0, 4))] if producer == "input" else [(BEFORE, (2, 0, 3)), (AFTER, (2, 0, 4))]
    assert table.stream_by_java() == [*new, (ADD, (3, 0, 3))]
    table.ours().alter(RemoveOption("changelog-producer"))
    table.append_by_us([(ADD, (3, 0, 5))])
    assert table.rows_by_java() == table.rows_by_us() == [(1, 0, 1), (2, 0, 4), (3, 0, 5)]


def test_lookup_is_neither_given_nor_taken_where_versions_add_up(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    columns = {"k": "INT", "g": "INT", "n": "INT"}
    plain = catalog.create_table("db.plain", columns, primary_key=["k"], options=SUM)
    looking = catalog.create_table("db.l", columns, primary_key=["k"], options={**SUM, "changelog-producer": "lookup"})

    for change in (SetOption("changelog-producer", "lookup"), SetOption("force-lookup", "true")):
        with pytest.raises(InvalidInputError, match=r"db\.plain.* counted twice .*full-compaction"):
            plain.alter(change)
    with pytest.raises(InvalidInputError, match=r"db\.l.* counted twice"):
        looking.alter(RemoveOption("changelog-producer"))
    assert (
        plain.alter(SetOption("changelog-producer", "full-compaction")).options.changelog_producer == "full-compaction"
    )


def _streamed(table: DynamicTable, normalize: str) -> list[Row]:
    source = table.stream(position=StreamPosition(snapshot_id=0), normalize=normalize)
    batches = iter(source.poll, None)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("seed", thinned(range(24), keep=6))
def test_two_engines_and_a_model_agree_on_random_histories(paimon_core: PaimonCore, tmp_path: Path, seed: int) -> None:
    Life(paimon_core, tmp_path, seed).run()
