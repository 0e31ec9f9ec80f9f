"""Ages of changes when a materialized table first contains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

PERCENTS = (50, 99)
_WARM_UP_REFRESHES = 3


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """A commit of a source. Times are epoch milliseconds; its events are spread evenly from the first to the last."""

    table: str
    snapshot: int
    time: int
    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True)
class RefreshCommit:
    """A commit of a refresh, and the snapshots of the sources that the table then holds, by name."""

    time: int
    positions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Freshness:
    """Ages in seconds, by percent: since the commit of the source, and since the creation of the event."""

    since_commit: Mapping[int, float]
    since_creation: Mapping[int, float]
    commits: int


def ages_of(name: str, commits: Sequence[SourceCommit], refreshes: Sequence[RefreshCommit]) -> dict[str, float]:
    """Return the figures of a query's record: ages of the changes of the tables that it reads, after its warm-up.

    Raises ``ValueError`` if nothing was committed to these tables.
    """
    # A query that is refreshed only a few times has no warm part.
    warm = refreshes[_WARM_UP_REFRESHES].time if len(refreshes) > 2 * _WARM_UP_REFRESHES else 0
    counted = [each for each in commits if each.table in refreshes[-1].positions and each.time >= warm]
    if not counted:
        message = f"{name}: nothing was committed to its sources; use more seconds"
        raise ValueError(message)
    ages = freshness(counted, refreshes, PERCENTS)
    return {
        "commits": ages.commits,
        **{f"since_commit_p{each}": ages.since_commit[each] for each in PERCENTS},
        **{f"since_creation_p{each}": ages.since_creation[each] for each in PERCENTS},
    }


def freshness(
    commits: Sequence[SourceCommit], refreshes: Sequence[RefreshCommit], percents: Sequence[int]
) -> Freshness:
    """Return the ages of all rows of the commits. Raises ``ValueError`` if a commit is in no refresh."""
    of_commits, of_events = [], []
    for each in commits:
        found = next((refresh for refresh in refreshes if refresh.positions[each.table] >= each.snapshot), None)
        if found is None:
            message = f"no refresh contains snapshot {each.snapshot} of {each.table}"
            raise ValueError(message)
        of_commits.append(np.full(each.rows, found.time - each.time))
        of_events.append(found.time - np.linspace(each.first, each.last, each.rows))
    return Freshness(
        _percentiles(np.concatenate(of_commits), percents),
        _percentiles(np.concatenate(of_events), percents),
        len(commits),
    )


def _percentiles(millis: np.ndarray[tuple[int], np.dtype[np.float64]], percents: Sequence[int]) -> dict[int, float]:
    return {each: round(float(np.percentile(millis, each)) / 1000, 3) for each in percents}
