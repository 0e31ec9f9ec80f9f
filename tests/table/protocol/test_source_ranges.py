"""Source ranges as text, for an engine's options."""

from __future__ import annotations

import pytest

from storage_lib import InvalidInputError
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.protocol.source_offsets import SourceRange, ranges_of_json, ranges_to_json


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
