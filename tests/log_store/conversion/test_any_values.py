"""Conversions never raise for a value: whatever a record holds is converted or refused, pair by pair of types."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.log_store.conversion.assumed_value_type import of_flink, of_modes
from storage_lib.log_store.conversion.capture_modes import CaptureModes
from storage_lib.log_store.conversion.captured_json import read_type
from storage_lib.log_store.conversion.captured_value_type import Meaning, ValueType
from storage_lib.log_store.conversion.captured_values import converted, is_convertible
from storage_lib.log_store.conversion.connect_schema import value_type
from storage_lib.schema.options.source_options import OutOfRange, TimePrecision
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.debezium_values import Modes, a_source

TYPES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "CHAR(3)",
    "BYTES",
    "DECIMAL(5, 2)",
    "DECIMAL(38, 0)",
    "DECIMAL(38, 38)",
    "DATE",
    "TIME(3)",
    "TIMESTAMP(0)",
    "TIMESTAMP(6)",
    "TIMESTAMP(9)",
    "TIMESTAMP_LTZ(3)",
    "TIMESTAMP_LTZ(9)",
    "ARRAY<INT>",
    "ARRAY<DECIMAL(5, 2)>",
    "MAP<STRING, DATE>",
    "ROW<a INT, b STRING, c DATE>",
)
TEXTS = (
    *("", " ", "0", "-1", "+1", "1.50", ".5", "5.", "1e3", "1E-400", "1e400", "1e9999", "9" * 39, "-" + "9" * 80),
    *("NaN", "NAN", "Infinity", "-Infinity", "infinity", "-infinity", "inf", "nan", "1_0", "١٢", "0x1F", "12 EUR"),
    *(
        "2024-02-29",
        "2024-02-30",
        "-0044-03-15",
        "+29999-12-31",
        "0000-01-01",
        "2024-05-14T12:00:00",
        "2024-05-14 12:00",
    ),
    *(
        "2024-05-14T12:00:00.123456789Z",
        "2024-05-14T12:00:00+14:00",
        "-290308-12-21T19:59:27.6Z",
        "24:00:00",
        "23:59:60",
    ),
    *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "999999999-12-31T00:00:00Z", "12:00", "12:00:00.5+01"),
    *("AXM=", "AXM", "A", "====", "AA==", "//8=", "__8=", "deadbeef", "DEADBEE", "é", "😀\0\n", "f" * 400, "true"),
)
NUMBERS = (0, 1, -1, 127, 128, 255, -(2**31), 2**31, 2**53 + 1, 10**18, -(2**63), 2**63 - 1, 86_400_000, 86_400_000_000)
FLOATS = (
    0.0,
    -0.0,
    0.1,
    1.5,
    1e15,
    1e16,
    2.0**63,
    1e38,
    1e39,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    -float("inf"),
)


def test_any_value_is_converted_or_refused() -> None:
    play(seed=3, rounds=200)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4, 12))
def test_any_further_value_is_converted_or_refused(seed: int) -> None:
    play(seed, rounds=600)


def play(seed: int, rounds: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    pairs = 0
    for number in range(rounds):
        modes = Modes.draw(chance)
        options = modes.options | {
            "source.out-of-range": chance.choice(tuple(OutOfRange)),
            "source.time-precision": chance.choice(tuple(TimePrecision)),
        }
        parsed = CaptureModes.parse({key: value for key, value in options.items() if chance.random() < 0.8})
        of = parse_type(chance.choice(TYPES))
        field = DataField(id=0, name="v", type=of)
        written = chance.choice(
            (value_type(a_source(chance, modes).form(modes).schema), of_modes(field, parsed), of_flink(field))
        )
        values = [any_value(written, chance) for _ in range(chance.randint(0, 40))]
        print(f"seed {seed}, round {number}: {written!r} {of} {parsed} {values}")
        if not is_convertible(written, of, parsed):
            continue
        pairs += 1
        column = pa.array(values, read_type(written))
        found = converted(column, written, field, parsed)
        found.array.validate(full=True)
        assert found.array.type == of.arrow
        refused = np.zeros(len(values), bool)
        for each in found.refusals:
            assert each.reason.startswith("column 'v")
            assert each.mask.any()
            refused |= each.mask
        is_null = found.array.is_null().to_numpy(zero_copy_only=False)
        was_null = np.array([each is None for each in values], bool)
        assert is_null[refused].all()
        assert is_null[was_null].all()
        assert not refused[was_null].any()
        if parsed.out_of_range is not OutOfRange.NULL:
            assert (is_null == (refused | was_null)).all()
        if number % 5 == 0:
            same_one_by_one(column, written, field, parsed, found.array)
    assert pairs > rounds // 4


def same_one_by_one(
    column: pa.Array, written: ValueType, field: DataField, modes: CaptureModes, expected: pa.Array
) -> None:
    """Check that a value does not depend on the others, some of which make a batch take another way."""
    alone = [converted(column.slice(row, 1), written, field, modes).array for row in range(len(column))]
    together = pa.concat_arrays([pa.array([], field.type.arrow), *alone])
    assert together.to_string(window=100) == expected.to_string(window=100)


def any_value(written: ValueType, chance: random.Random) -> Any:  # noqa: PLR0911  one per kind of type
    if chance.random() < 0.1:
        return None
    match written.meaning:
        case Meaning.ARRAY if written.element is not None:
            return [any_value(written.element, chance) for _ in range(chance.randint(0, 3))]
        case Meaning.MAP if written.key is not None and written.element is not None:
            pairs = [(any_value(written.key, chance), any_value(written.element, chance)) for _ in range(2)]
            return [(key, value) for key, value in pairs if key is not None]
        case Meaning.ROW:
            return {name: any_value(each, chance) for name, each in written.fields}
    kind = read_type(written)
    if pa.types.is_struct(kind):
        return {"scale": chance.choice((None, 0, 2, 5, -3, 40, 1000, -1000)), "value": chance.choice((None, *TEXTS))}
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_decimal(kind):
        return Decimal(chance.randint(-9, 9)).scaleb(-kind.scale)
    if pa.types.is_floating(kind):
        return chance.choice(FLOATS)
    return chance.choice(TEXTS if pa.types.is_string(kind) else NUMBERS)
