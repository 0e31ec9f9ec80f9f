"""Names in the lease directory, and the interpretation of a listing."""

from __future__ import annotations

import pytest

from storage_lib.io.table_directory.lease_paths import LeasePaths, is_ticket
from storage_lib.io.table_directory.table_paths import TablePaths

PATHS = LeasePaths(TablePaths("/warehouse/db.db/orders").lease_directory)


@pytest.mark.parametrize(
    ("name", "lease", "of_turn", "waiting"),
    [
        ("lease-7", 7, 7, False),
        ("beat-7", None, 7, False),
        ("released-12", None, 12, False),
        ("waiting-abc", None, None, True),
        ("lease-x", None, None, False),
        ("lease-", None, None, False),
        ("lease-²", None, None, False),
        (".lease-7.0a.tmp", None, None, False),
    ],
)
def test_files_of_the_lease_directory_are_told_apart(
    name: str,
    lease: int | None,
    of_turn: int | None,
    waiting: bool,  # noqa: FBT001
) -> None:
    listing = PATHS.listing([name])

    assert listing.newest == lease
    assert [number for number, _ in listing.numbered] == ([] if of_turn is None else [of_turn])
    assert is_ticket(name) is waiting
    assert [*listing.tickets] == ([f"{PATHS.directory}/{name}"] if waiting else [])


def test_paths_come_back_from_a_listing_as_what_they_were() -> None:
    paths = [PATHS.lease(3), PATHS.beat(3), PATHS.released(3), PATHS.waiting("x")]

    listing = PATHS.listing(path.removeprefix(f"{PATHS.directory}/") for path in paths)

    assert [path for _, path in listing.numbered] == paths[:3]
    assert [*listing.tickets] == paths[3:]


def test_only_the_release_of_the_newest_lease_frees_the_table() -> None:
    assert PATHS.listing(["lease-9", "lease-10", "released-10"]).is_released
    assert not PATHS.listing(["lease-9", "lease-10", "released-9"]).is_released
    assert not PATHS.listing(["lease-10", "released-11"]).is_released
    assert not PATHS.listing([]).is_released
