"""Flink 1.20 and 2.0 with Paimon's connector read and write our tables, in batch and in streaming mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage_lib.schema.types.row_kind import RowKind
from tests.interop.engines import IDENTIFIER, FlinkSql, Ours, Place, types_of
from tests.interop.one_life import DAYS, SAME, comparable, difference
from tests.interop.table_cases import EVERY_TYPE, TABLES, TableCase
from tests.support.deep_tests import thinned
from tests.support.flink import Flink
from tests.support.line_servant import RefusedError

DAY = DAYS[0]
pytestmark = [pytest.mark.flink, pytest.mark.integration]


@pytest.fixture(params=thinned(["flink_2_0", "flink_1_20"]))
def flink(request: pytest.FixtureRequest) -> Flink:
    return request.getfixturevalue(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)


def test_flink_and_we_read_what_the_other_writes_of_every_type(flink: Flink, place: Place) -> None:
    case = TableCase(columns=EVERY_TYPE)
    engine = FlinkSql(flink)
    engine.create(place, case)
    rows = [case.row(DAY, number, 0) for number in range(7)]

    engine.write(place, rows, [RowKind.INSERT] * 7)

    written = comparable(Ours().read(place, {}))
    assert len(written) == 7
    assert comparable(engine.read(place, {})) == written
    replaced = [case.row(DAY, number, 1) for number in range(7)]
    Ours().write(place, replaced, [RowKind.INSERT] * 7)
    updated = comparable(Ours().read(place, {}))
    assert updated != written
    assert difference(comparable(engine.read(place, {})), updated) == (SAME, "")


def test_a_streaming_insert_of_flink_updates_and_deletes(flink: Flink, place: Place) -> None:
    case = TableCase()
    Ours().create(place, case)
    Ours().write(place, [case.row(DAY, number, 0) for number in range(3)], [RowKind.INSERT] * 3)

    kinds = [RowKind.UPDATE_AFTER, RowKind.DELETE]
    FlinkSql(flink).write(place, [case.row(DAY, 0, 1), case.row(DAY, 1, 0)], kinds)

    assert comparable(Ours().read(place, {})) == comparable([case.row(DAY, 0, 1), case.row(DAY, 2, 0)])


def test_a_streaming_select_of_flink_gives_our_commits_as_changes(flink: Flink, place: Place) -> None:
    case = TableCase()
    Ours().create(place, case)
    first, second = ([case.row(DAY, number, turn) for number in range(2)] for turn in range(2))
    Ours().write(place, first, [RowKind.INSERT] * 2)
    Ours().write(place, second[:1], [RowKind.INSERT])
    Ours().write(place, second[1:], [RowKind.DELETE])

    changes = flink.stream(place.warehouse, IDENTIFIER, types_of(place.schema), 3)

    assert sorted(changes[:2]) == [(RowKind.INSERT, row) for row in first]
    assert changes[2:] == [
        (RowKind.UPDATE_BEFORE, first[0]),
        (RowKind.UPDATE_AFTER, second[0]),
        (RowKind.DELETE, first[1]),
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("value counts", r"value-count \(this table has no primary key and counts equal rows, .* append-only table"),
        # Flink before 2.1 lacks this type, and its error says no more than this.
        ("VARIANT", "Data type must not be null|elementDataType. is null"),
        ("VARIANT, append-only", "Data type must not be null|elementDataType. is null"),
    ],
)
def test_flink_refuses_what_it_lacks_by_name(flink: Flink, place: Place, name: str, words: str) -> None:
    case = TABLES[name]
    Ours().create(place, case)
    Ours().write(place, [case.row(DAY, 1, 0)], [RowKind.INSERT])

    with pytest.raises(RefusedError, match=words):
        FlinkSql(flink).read(place, {})
    with pytest.raises(RefusedError, match=words):
        FlinkSql(flink).write(place, [case.row(DAY, 2, 0)], [RowKind.INSERT])
    assert len(Ours().read(place, {})) == 1


def test_what_flink_refuses_is_said_in_its_words(flink: Flink, place: Place) -> None:
    Ours().create(place, TableCase())

    with pytest.raises(RefusedError, match="Object 'nowhere' not found"):
        flink.query(place.warehouse, "SELECT * FROM db.nowhere", [])
