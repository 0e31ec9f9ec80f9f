"""Values converted to decimals stay exact, or are refused with row and value."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import pyarrow as pa
import pytest

from storage_lib.schema.types.exact_decimals import as_decimals

EXACT = Context(prec=100)
CASES = 3_000


def fits(value: Decimal, of: pa.Decimal128Type) -> bool:
    unscaled = EXACT.scaleb(value, of.scale)
    return unscaled == EXACT.to_integral_value(unscaled) and abs(unscaled) < 10**of.precision


def a_type(rng: random.Random) -> pa.Decimal128Type:
    precision = rng.randint(1, 38)
    return pa.decimal128(precision, rng.randint(0, precision))


def a_number(rng: random.Random, of: pa.Decimal128Type) -> Decimal:
    number = rng.randrange(10 ** rng.randint(0, of.precision)) * rng.choice((1, -1))
    return EXACT.scaleb(Decimal(number), -of.scale)


@pytest.mark.parametrize("form", ["decimal", "text", "float", "integer"])
def test_every_value_is_kept_or_refused(form: str) -> None:
    rng = random.Random(form)  # noqa: S311  chance, not secrets
    kept = 0
    for _ in range(CASES):
        given, wanted = a_type(rng), a_type(rng)
        value = a_number(rng, given)
        match form:
            case "decimal":
                array = pa.array([value], given)
            case "text":
                array = pa.array([rng.choice((format(value, "f"), str(value)))])
            case "float":
                value = Decimal(repr(float(value)))
                array = pa.array([float(value)])
            case _:
                value = Decimal(rng.randrange(-(2**63), 2**63) >> rng.randrange(64))
                array = pa.array([int(value)])
        if fits(value, wanted):
            assert as_decimals(array, wanted).to_pylist() == [value], (array, wanted)
            kept += 1
        else:
            with pytest.raises(pa.ArrowInvalid, match="of row 0"):
                as_decimals(array, wanted)

    assert kept > CASES / 10


def test_a_number_whose_digits_overflow_is_refused() -> None:
    # Arrow would return 0.47112070606119069254067327058583748608.
    with pytest.raises(pa.ArrowInvalid, match=r"Decimal\('7085.15'\) of row 1: .*precision 38"):
        as_decimals(pa.array([Decimal("0.10"), Decimal("7085.15")]), pa.decimal128(38, 38))


def test_the_largest_and_smallest_of_a_type_are_kept() -> None:
    for precision, scale in ((38, 0), (38, 38), (38, 19), (18, 3), (1, 0), (1, 1)):
        most = EXACT.scaleb(Decimal(10**precision - 1), -scale)
        values = [most, most.copy_negate(), None]
        for array in (pa.array([str(most), f"-{most}", None]), pa.array(values, pa.decimal256(76, scale))):
            assert as_decimals(array, pa.decimal128(precision, scale)).to_pylist() == values
