"""A timestamp given by a caller is the same instant on every machine, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.encoding.moment import Moment, epoch_millis

NOON = 1_715_688_000_000


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        datetime(2024, 5, 14, 12, tzinfo=UTC),
        datetime(2024, 5, 14, 14, tzinfo=timezone(timedelta(hours=2))),
        "2024-05-14T12:00:00Z",
        "2024-05-14 14:00:00+02:00",
        " 20240514T120000Z ",
    ],
)
def test_a_time_in_any_form_is_the_same_moment(moment: Moment) -> None:
    assert epoch_millis(moment, "timestamp") == NOON


def test_parts_of_a_millisecond_are_left_out_also_before_1970() -> None:
    assert epoch_millis("2024-05-14T12:00:00.000999Z", "timestamp") == NOON
    assert epoch_millis("1969-12-31T23:59:59.999500Z", "timestamp") == -1


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (datetime(2024, 5, 14, 12), "has no time zone; pass one with tzinfo"),  # noqa: DTZ001  what is refused
        ("2024-05-14T12:00:00", "has no time zone; write '2024-05-14T12:00:00Z' for UTC"),
        ("2024-05-14", "has no time zone; write '2024-05-14T00:00Z' for UTC"),
        ("yesterday", "timestamp is 'yesterday'; give ISO 8601 text"),
        (str(NOON), "milliseconds since 1970 are an int"),
        ("", "give ISO 8601 text"),
        (date(2024, 5, 14), "of type date; give a datetime with a time zone"),
        (1.5, "of type float"),
        (True, "of type bool"),
    ],
)
def test_what_is_no_moment_is_refused_with_what_to_write(moment: object, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        epoch_millis(moment, "timestamp")  # type: ignore[arg-type]
