"""Streams of tables written by Flink and this library: the changes in either engine's stream add up to the table.

Each table goes through the same few commits, by this library, by both Flinks, or by all alternately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.stream.hybrid_source import HybridSource
from tests.interop.engines import IDENTIFIER, Engine, FlinkSql, Ours, Place, types_of
from tests.interop.one_life import DAYS
from tests.interop.table_cases import TableCase
from tests.support.deep_tests import thinned
from tests.support.flink import Flink
from tests.support.shared_table import Change, Row, folded, sorted_rows

ADD, DELETE = RowKind.INSERT, RowKind.DELETE
BEFORE, AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER
COLUMNS = {"g": ("BIGINT", [1]), "n": ("BIGINT", [1])}
KEYS = 2
MERGING: dict[str, Mapping[str, str]] = {
    "deduplicate": {},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "sequence group": {
        "merge-engine": "partial-update",
        "fields.g.sequence-group": "n",
        "fields.n.aggregate-function": "sum",
    },
    "first-row": {"merge-engine": "first-row"},
}
STREAMED = [
    *(("deduplicate", producer) for producer in ("none", "input", "lookup", "full-compaction")),
    *(("deletion vectors", producer) for producer in ("none", "input", "lookup")),
    *(
        (merging, producer)
        for merging in ("aggregation", "sequence group")
        for producer in ("lookup", "full-compaction")
    ),
    ("first-row", "lookup"),
]
"""Kinds that both Flinks can stream; the kinds that they refuse follow below."""
WRITERS = {
    "ours": ("ours",),
    "flink": ("1.20", "2.0"),
    "in turns": ("ours", "1.20", "ours", "2.0"),
}


@dataclass(frozen=True)
class History:
    """History of a table with two partitions, key ``day`` and ``id``, and columns ``g`` and ``n``."""

    place: Place
    engines: Mapping[str, Engine]
    merging: str
    producer: str

    @property
    def case(self) -> TableCase:
        options = {"bucket": "1", **MERGING[self.merging], "changelog-producer": self.producer}
        return TableCase(columns=COLUMNS, options=options)

    def begin(self, writers: Sequence[str]) -> HybridSource:
        """Create the empty table, and return our stream of it."""
        self.engines[writers[0]].create(self.place, self.case)
        return self.place.ours().stream(normalize="lookup")

    def live(self, writers: Sequence[str]) -> None:
        """Insert, update, compact fully, delete if the table permits, and insert the deleted keys again."""
        steps = (self.first(), self.updates(), None, self.deletions(), self.again())
        for turn, step in enumerate(steps):
            engine = self.engines[writers[turn % len(writers)]]
            if step is None:
                engine.compact(self.place, full=True)
            elif step:
                engine.write(self.place, [row for _, row in step], [kind for kind, _ in step])

    def first(self) -> list[Change]:
        return [(ADD, (DAYS[number % 2], number, 1, 10)) for number in range(6)]

    def updates(self) -> list[Change]:
        old, new = ((DAYS[0], number, 1, 10) for number in (0, 2)), ((DAYS[0], number, 2, 1) for number in (0, 2))
        if self.producer == "input":
            return [change for pair in zip(old, new, strict=True) for change in zip((BEFORE, AFTER), pair, strict=True)]
        return [(ADD, row) for row in new]

    def deletions(self) -> list[Change]:
        if self.merging not in {"deduplicate", "deletion vectors"}:
            return []
        return [(DELETE, (DAYS[0], 2, 2, 1)), (DELETE, (DAYS[1], 3, 1, 10))]

    def again(self) -> list[Change]:
        if self.producer == "input":
            return [(ADD, (DAYS[1], 3, 3, 5)), (ADD, (DAYS[1], 7, 3, 5))]
        return [(ADD, (DAYS[1], number, 3, 5)) for number in (1, 3, 7)]


def rows_by(engine: Engine, place: Place) -> list[Row]:
    return sorted_rows(engine.read(place, {}))


def stream_of_flink(flink: Flink, place: Place) -> list[Change]:
    newest = place.ours().context.file_store.snapshots.latest_id()
    assert newest is not None
    return flink.stream(place.warehouse, IDENTIFIER, types_of(place.schema), newest)


def drained(source: HybridSource) -> list[Change]:
    kinds = {kind.symbol: kind for kind in RowKind}
    changes: list[Change] = []
    while (batch := source.poll()) is not None:
        rows = [tuple(row.values()) for row in batch.to_pylist()]
        changes += [(kinds[row[-1]], row[:-1]) for row in rows]
    return changes


@pytest.mark.parametrize("writers", thinned(WRITERS, keep=lambda writers: writers == "in turns"))
@pytest.mark.parametrize(("merging", "producer"), STREAMED)
def test_streams_add_up_to_the_table(
    flink_1_20: Flink, flink_2_0: Flink, tmp_path: Path, merging: str, producer: str, writers: str
) -> None:
    place = Place(warehouse=tmp_path / "warehouse", scratch=tmp_path)
    flinks = {"1.20": flink_1_20, "2.0": flink_2_0}
    engines: dict[str, Engine] = {"ours": Ours(), **{name: FlinkSql(flink) for name, flink in flinks.items()}}

    history = History(place, engines, merging, producer)
    source = history.begin(WRITERS[writers])
    history.live(WRITERS[writers])

    rows = rows_by(Ours(), place)
    assert rows
    for name, flink in flinks.items():
        assert rows_by(engines[name], place) == rows, name
        assert sorted_rows(folded(stream_of_flink(flink, place), key_count=KEYS).values()) == rows, name
    assert sorted_rows(folded(drained(source), key_count=KEYS).values()) == rows
