"""Settings by which captured values are read: the connector's modes, and what to do with values that do not fit.

The modes matter only where records carry no schema (``assumed_value_type``), with one exception: no schema says
whether the text of a binary column is base64 or hex.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    word_option,
)


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
        words = {key: text.strip().lower() for key, text in options.items()}
        return cls(
            decimal=word_option(words, DECIMAL_MODE, DecimalMode),
            time=word_option(words, TIME_MODE, TimeMode) or TimeMode.ADAPTIVE,
            binary=word_option(words, BINARY_MODE, BinaryMode),
            placeholder=placeholder,
            out_of_range=word_option(words, OUT_OF_RANGE, OutOfRange) or OutOfRange.REJECT,
            time_precision=word_option(words, TIME_PRECISION, TimePrecision) or TimePrecision.AUTO,
        )
