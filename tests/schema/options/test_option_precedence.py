"""Precedence of options that are set at several levels."""

from __future__ import annotations

from itertools import combinations

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.option_precedence import effective_options, merged_options

STRONGEST_FIRST = ("hint", "table", "session", "connection")


@pytest.mark.parametrize(
    "places", [each for size in range(1, 5) for each in combinations(STRONGEST_FIRST, size)], ids="-".join
)
def test_of_those_who_say_an_option_the_strongest_is_heard(places: tuple[str, ...]) -> None:
    said = {place: {"bucket": str(STRONGEST_FIRST.index(place) + 2)} for place in places}

    assert merged_options(**said) == {"bucket": str(STRONGEST_FIRST.index(places[0]) + 2)}


def test_what_nobody_says_is_the_default() -> None:
    assert effective_options().log_scan == "full"
    assert merged_options() == {}


def test_older_spellings_and_the_session_s_prefix_name_the_same_option() -> None:
    merged = merged_options(
        hint={"log.scan.startup.mode": "latest"},
        table={"log.scan": "full", "log.pk.changelog-mode": "all"},
        session={"table-storage.log.changelog-mode": "upsert", "table-storage.bucket": "3"},
    )

    assert merged == {"log.scan": "latest", "log.changelog-mode": "all", "bucket": "3"}
    assert effective_options(hint={"log.scan.startup.mode": "initial"}, table={"log.scan": "latest"}).log_scan == "full"


def test_a_value_that_can_not_be_is_refused_wherever_it_was_said() -> None:
    with pytest.raises(InvalidInputError, match="bucket is 'many'"):
        effective_options(session={"table-storage.bucket": "many"})
