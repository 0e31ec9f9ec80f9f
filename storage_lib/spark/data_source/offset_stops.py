"""Stops of a micro-batch: positions between its start and its end, which Spark stores with the end in the checkpoint.

    start {"start": "log.scan"} ─▶ end {"snapshot": 7, "log": {…}, "stops": [{"start": "log.scan"}, {"snapshot": 7, …}]}

Our readers go from position to position, each of one kind: the start, a snapshot, the log. Before Spark 4.2, which
lacks admission control, a micro-batch may have to contain several of these steps. Its end then lists where they begin,
so that it is planned in the same way when it is replayed, by any version of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from storage_lib.errors import InvalidInputError

STOPS = "stops"

Offset: TypeAlias = dict[str, Any]


def without_stops(offset: Mapping[str, Any]) -> Offset:
    """Return the position alone."""
    return {key: value for key, value in offset.items() if key != STOPS}


def with_stops(places: list[Offset]) -> Offset:
    """Return the end of a micro-batch that goes through these places, the first of which is its start."""
    *before, last = places
    return last if len(before) == 1 else {**last, STOPS: before}


def steps_of(start: Offset, end: Offset) -> list[tuple[Offset, Offset]]:
    """Return the steps of the micro-batch between two offsets of a checkpoint.

    Raises ``InvalidInputError`` if the stops belong to a micro-batch with another start: rows would be lost, or read a
    second time.
    """
    begin, last = without_stops(start), without_stops(end)
    if begin == last:
        return [(begin, last)]
    places = [*end.get(STOPS, [begin]), last]
    if places[0] != begin:
        message = (
            f"the micro-batch that Spark continues at {begin} was planned from {places[0]} on; start the stream again "
            "from its checkpoint"
        )
        raise InvalidInputError(message)
    return list(pairwise(places))
