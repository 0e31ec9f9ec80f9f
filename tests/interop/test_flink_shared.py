"""Merges, compactions, overwrites, drops and rollbacks of one table by Flink and this library, as both see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib import InvalidInputError
from storage_lib.schema.types.row_kind import RowKind
from tests.interop.engines import IDENTIFIER, TABLE, FlinkSql, Ours, Place, Rows, arrow_of, types_of
from tests.interop.one_life import DAYS
from tests.interop.table_cases import TableCase
from tests.support.deep_tests import thinned
from tests.support.flink import Flink
from tests.support.line_servant import RefusedError
from tests.support.shared_table import folded, sorted_rows

DAY, OTHER = DAYS
COLUMNS = {"g": ("BIGINT", [1]), "n": ("BIGINT", [1])}
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
GROUP = {"merge-engine": "partial-update", "fields.g.sequence-group": "n", "fields.n.aggregate-function": "sum"}
FIRST = {"merge-engine": "first-row"}
VECTORS = {"deletion-vectors.enabled": "true"}


pytestmark = [pytest.mark.flink, pytest.mark.integration]


@pytest.fixture(params=thinned(["flink_2_0", "flink_1_20"]))
def flink(request: pytest.FixtureRequest) -> Flink:
    return request.getfixturevalue(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)


def case(**options: str) -> TableCase:
    return TableCase(columns=COLUMNS, options={"bucket": "1", **options})


def rows_by(engine: Ours | FlinkSql, place: Place) -> Rows:
    return sorted_rows(engine.read(place, {}))


def write(engine: Ours | FlinkSql, place: Place, *rows: tuple[str, int, int, int]) -> None:
    engine.write(place, rows, [RowKind.INSERT] * len(rows))


@pytest.mark.parametrize("merging", [SUM, GROUP], ids=["aggregation", "sequence group"])
@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_what_flink_has_merged_is_not_counted_again(
    flink: Flink, place: Place, merging: dict[str, str], producer: str
) -> None:
    theirs, ours = FlinkSql(flink), Ours()
    theirs.create(place, case(**merging, **{"changelog-producer": producer}))
    write(theirs, place, (DAY, 1, 1, 1))
    write(theirs, place, (DAY, 1, 2, 10))

    assert rows_by(ours, place) == rows_by(theirs, place) == [(DAY, 1, 2, 11)]
    ours.compact(place, full=True)
    assert rows_by(ours, place) == rows_by(theirs, place) == [(DAY, 1, 2, 11)]


@pytest.mark.parametrize("merging", [SUM, GROUP], ids=["aggregation", "sequence group"])
def test_what_we_have_merged_is_not_left_out_by_flink(flink: Flink, place: Place, merging: dict[str, str]) -> None:
    theirs, ours = FlinkSql(flink), Ours()
    theirs.create(place, case(**merging, **{"changelog-producer": "lookup"}))
    write(theirs, place, *((DAY, key, 1, 800) for key in range(100)))
    write(ours, place, (DAY, 1, 2, 1))

    assert (DAY, 1, 2, 801) in rows_by(theirs, place)
    ours.compact(place, full=False)
    assert (DAY, 1, 2, 801) in rows_by(theirs, place)
    write(theirs, place, (DAY, 1, 3, 1))
    ours.compact(place, full=True)
    assert (DAY, 1, 3, 802) in rows_by(theirs, place)
    assert rows_by(theirs, place) == rows_by(ours, place)


def test_a_producer_that_flink_sets_on_our_table_is_ours_from_then_on(flink: Flink, place: Place) -> None:
    ours = Ours()
    ours.create(place, case())
    write(ours, place, (DAY, 1, 1, 1), (DAY, 2, 1, 1))
    flink.execute(place.warehouse, f"ALTER TABLE {TABLE} SET ('changelog-producer' = 'lookup')")
    write(ours, place, (DAY, 1, 2, 2), (DAY, 3, 1, 1))
    ours.write(place, [(DAY, 2, 1, 1)], [RowKind.DELETE])
    newest = place.ours().context.file_store.snapshots.latest_id()
    assert newest is not None

    changes = flink.stream(place.warehouse, IDENTIFIER, types_of(place.schema), newest)

    assert sorted_rows(folded(changes, key_count=2).values()) == [(DAY, 1, 2, 2), (DAY, 3, 1, 1)]
    assert (RowKind.DELETE, (DAY, 2, 1, 1)) in changes


@pytest.mark.parametrize("options", [VECTORS, FIRST], ids=["deletion vectors", "first-row"])
def test_our_appends_overwrites_drops_and_rollbacks_are_seen_at_once(
    flink: Flink, place: Place, options: dict[str, str]
) -> None:
    theirs, ours = FlinkSql(flink), Ours()
    theirs.create(place, case(**options))
    write(ours, place, (DAY, 1, 1, 1), (DAY, 2, 1, 1), (OTHER, 3, 1, 1))
    first = rows_by(ours, place)
    assert rows_by(theirs, place) == first
    write(ours, place, (DAY, 1, 2, 2), (OTHER, 4, 1, 1))
    assert rows_by(theirs, place) == rows_by(ours, place)

    table = place.ours()
    table.overwrite(arrow_of([(DAY, 2, 7, 7)], table.schema), partition={"day": DAY}, change_tracking=True)
    overwritten = rows_by(ours, place)
    assert [row for row in overwritten if row[0] == DAY] == [(DAY, 2, 7, 7)]
    assert rows_by(theirs, place) == overwritten

    place.ours().maintenance.drop_partitions([{"day": OTHER}], change_tracking=True)
    assert rows_by(theirs, place) == rows_by(ours, place) == [(DAY, 2, 7, 7)]

    place.ours().rollback_to(snapshot_id=1)
    assert rows_by(theirs, place) == rows_by(ours, place) == first


NOT_STREAMED = r"{} streaming reading is not supported\. You can use 'lookup' or 'full-compaction' changelog producer"


@pytest.mark.parametrize(
    ("merging", "words"),
    [(SUM, "Pre-aggregate"), (GROUP, "Partial update"), (FIRST, "First row")],
    ids=["aggregation", "sequence group", "first-row"],
)
def test_flink_refuses_to_stream_merged_rows_without_a_changelog_of_them(
    flink: Flink, place: Place, merging: dict[str, str], words: str
) -> None:
    FlinkSql(flink).create(place, case(**merging, **{"changelog-producer": "none"}))
    write(Ours(), place, (DAY, 1, 1, 1))

    with pytest.raises(RefusedError, match=NOT_STREAMED.format(words)):
        flink.stream(place.warehouse, IDENTIFIER, types_of(place.schema), 1)


@pytest.mark.parametrize(
    ("options", "words", "our_words"),
    [
        ({**FIRST, "changelog-producer": "input"}, "Only support 'none' and 'lookup' changelog-producer", "first-row"),
        (
            {**VECTORS, "changelog-producer": "full-compaction"},
            "Deletion vectors mode is only supported for NONE/INPUT/LOOKUP changelog producer",
            "deletion-vectors",
        ),
    ],
    ids=["first-row, input", "deletion vectors, full-compaction"],
)
def test_producers_that_do_not_fit_the_table_are_refused_when_it_is_made(
    flink: Flink, place: Place, options: dict[str, str], words: str, our_words: str
) -> None:
    with pytest.raises(RefusedError, match=words):
        FlinkSql(flink).create(place, case(**options))
    with pytest.raises(InvalidInputError, match=rf"(?s)(?=.*{our_words})(?=.*{options['changelog-producer']})"):
        Ours().create(place, case(**options))
