"""Dates and times of ISO 8601 are read as Python's datetime reads them, alone and among others."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.schema.encoding.iso_text import FAR_DAYS, IsoMoments, iso_dates, iso_moments, iso_times

DAY = timedelta(days=1)
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
WRONG = ["", "x", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-01-01T00:60:00Z"]


def moments(rng: random.Random, count: int) -> list[datetime]:
    zones = [timezone(timedelta(minutes=rng.randint(-14 * 60, 14 * 60))) for _ in range(count)]
    micros = [rng.randrange(10**6) * rng.choice((0, 1)) for _ in range(count)]
    days = [rng.randint(1, date.max.toordinal() - 1) for _ in range(count)]
    return [
        datetime.combine(date.fromordinal(day), datetime.min.time(), zone)
        + timedelta(seconds=rng.randrange(86_400), microseconds=micro)
        for zone, micro, day in zip(zones, micros, days, strict=True)
    ]


def micros(found: IsoMoments) -> list[int]:
    whole = found.days * (86_400 * 10**6) + found.nanos // 1000 - found.offset_seconds * 10**6
    return [int(each) for each in whole]


@pytest.mark.parametrize("is_utc", [True, False])
def test_moments_are_those_of_python(is_utc: bool) -> None:  # noqa: FBT001  a parameter of the test
    written = moments(random.Random(3), 500)  # noqa: S311  reproducible
    text = [each.astimezone(UTC).isoformat().replace("+00:00", "Z") if is_utc else each.isoformat() for each in written]

    found = iso_moments(pa.array(text))

    assert found.is_valid.all()
    assert found.has_zone.all()
    assert micros(found) == [(each - FIRST) // timedelta(microseconds=1) for each in written]


def test_one_unusual_text_changes_nothing_about_the_others() -> None:
    written = [each.astimezone(UTC).isoformat().replace("+00:00", "Z") for each in moments(random.Random(4), 20)]  # noqa: S311

    usual = iso_moments(pa.array(written))
    mixed = iso_moments(pa.array([*written, None, *WRONG, "infinity", "-infinity", "+12024-02-29T23:00:00.123456789Z"]))

    assert micros(mixed)[:20] == micros(usual)
    assert mixed.is_valid.tolist() == [True] * 20 + [False] * (1 + len(WRONG)) + [True, True, True]
    assert mixed.days[-3:].tolist()[:2] == [FAR_DAYS, -FAR_DAYS]


def test_days_of_every_year_follow_each_other() -> None:
    years = [*range(-9999, 0, 37), *range(1, 9999, 97), *range(10_000, 999_999, 9973)]
    text = [f"{'-' if year < 0 else '+'}{abs(year):06}-{edge}" for year in years for edge in ("12-31", "01-01")]

    found = iso_dates(pa.array(text)).days.tolist()

    for year, (last, first) in zip(years, [found[i : i + 2] for i in range(0, len(found), 2)], strict=True):
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert last - first == (365 if is_leap else 364)
    assert all(early < late for early, late in pairwise(found[::2]))


def test_dates_are_those_of_python_with_and_without_zone() -> None:
    rng = random.Random(6)  # noqa: S311  reproducible
    days = [date.fromordinal(rng.randint(1, date.max.toordinal())) for _ in range(300)]

    plain = iso_dates(pa.array([each.isoformat() for each in days]))
    zoned = iso_dates(pa.array([f"{each.isoformat()}Z" for each in days]))

    expected = [(each - FIRST.date()).days for each in days]
    assert plain.days.tolist() == zoned.days.tolist() == expected
    assert plain.is_valid.all()
    assert zoned.is_valid.all()


def test_times_may_have_nine_digits_and_end_at_midnight() -> None:
    text = ["00:00", "23:59:59.999999999Z", "24:00:00", "12:00:00+02:00", "24:00:01", "12:61:00", "12", None]

    found = iso_times(pa.array(text))

    assert found.is_valid.tolist() == [True, True, True, True, False, False, False, False]
    assert found.nanos[:3].tolist() == [0, 86_400 * 10**9 - 1, 86_400 * 10**9]
    assert found.offset_seconds[3] == 7200
    assert np.array_equal(iso_times(pa.array(["00:00:01Z"])).nanos, [10**9])
