"""Source ranges: as text for an engine's options, and where each has to begin."""

from __future__ import annotations

import pytest

from storage_lib import CommitConflictError, InvalidInputError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourceRange, ranges_of_json, ranges_to_json


def test_ranges_keep_their_offsets_and_the_ids_of_their_logs() -> None:
    ranges = (
        SourceRange(source="a@main", start=None, end=LogOffsets({0: 7}, "id")),
        SourceRange(source="topic, 'x'", start=LogOffsets({0: 1, 5: 3}), end=LogOffsets({0: 4, 5: 3})),
    )

    found = ranges_of_json(ranges_to_json(ranges))

    assert found == ranges
    assert [each.end.log_id for each in found] == ["id", None]


@pytest.mark.parametrize("text", ["", "{}x", "[1]", '[["a"]]', '[["a", null, null]]', '[["a", null, [3, null]]]'])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a list of source ranges"):
        ranges_of_json(text)


def test_a_range_that_begins_where_the_table_ends_moves_its_source_only() -> None:
    reached = SourceOffsets(positions={"a": LogOffsets({0: 5}, "id"), "b": LogOffsets({0: 1})})

    moved = reached.advanced([SourceRange(source="a", start=LogOffsets({0: 5}, "id"), end=LogOffsets({0: 9}, "id"))])

    assert moved.positions == {"a": LogOffsets({0: 9}), "b": LogOffsets({0: 1})}


@pytest.mark.parametrize(
    ("reached", "start"),
    [
        (None, LogOffsets({0: 5})),
        (LogOffsets({0: 5}), None),
        (LogOffsets({0: 5}), LogOffsets({0: 4})),
        (LogOffsets({0: 5}), LogOffsets({0: 6})),
        (LogOffsets({0: 5}), LogOffsets({0: 5, 1: 2})),
        (LogOffsets({0: 5}, "id"), LogOffsets({0: 5}, "id of a recreated topic")),
    ],
)
def test_a_range_that_begins_elsewhere_than_the_table_ends_is_refused(
    reached: LogOffsets | None, start: LogOffsets | None
) -> None:
    offsets = SourceOffsets(positions={} if reached is None else {"a": reached})

    with pytest.raises(CommitConflictError, match="source 'a'"):
        offsets.advanced([SourceRange(source="a", start=start, end=LogOffsets({0: 9}))])
