"""Settings by which captured values are read: the connector's modes, and what to do with values that do not fit.

The modes matter only where records carry no schema (``assumed_value_type``), with one exception: no schema says
whether the text of a binary column is base64 or hex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.source_options import (
    BINARY_MODE,
    DECIMAL_MODE,
    OUT_OF_RANGE,
    PLACEHOLDER,
    TIME_MODE,
    TIME_PRECISION,
    UNAVAILABLE_VALUE,
    BinaryMode,
    DecimalMode,
    OutOfRange,
    TimeMode,
    TimePrecision,
)

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureModes:
    """Parsed options of a source. ``decimal`` and ``binary`` are None if no option names the connector's mode."""

    decimal: DecimalMode | None = None
    time: TimeMode = TimeMode.ADAPTIVE
    binary: BinaryMode | None = None
    placeholder: str = UNAVAILABLE_VALUE
    out_of_range: OutOfRange = OutOfRange.REJECT
    time_precision: TimePrecision = TimePrecision.AUTO

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> CaptureModes:
        """Read the options; other keys are ignored. Raises ``InvalidInputError`` for an unknown word."""
        placeholder = options.get(PLACEHOLDER, UNAVAILABLE_VALUE)
        if not placeholder:
            message = f"option {PLACEHOLDER} is empty; give the connector's unavailable.value.placeholder"
            raise InvalidInputError(message)
        return cls(
            decimal=_word(options, DECIMAL_MODE, DecimalMode) if DECIMAL_MODE in options else None,
            time=_word(options, TIME_MODE, TimeMode) if TIME_MODE in options else TimeMode.ADAPTIVE,
            binary=_word(options, BINARY_MODE, BinaryMode) if BINARY_MODE in options else None,
            placeholder=placeholder,
            out_of_range=_word(options, OUT_OF_RANGE, OutOfRange) if OUT_OF_RANGE in options else OutOfRange.REJECT,
            time_precision=(
                _word(options, TIME_PRECISION, TimePrecision) if TIME_PRECISION in options else TimePrecision.AUTO
            ),
        )


def _word(options: Mapping[str, str], key: str, words: type[Word]) -> Word:
    given = options[key].strip().lower()
    try:
        return words(given)
    except ValueError as error:
        message = f"option {key} is {options[key]!r}; it has to be one of {', '.join(words)}"
        raise InvalidInputError(message) from error
