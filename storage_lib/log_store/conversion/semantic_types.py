"""Types that Debezium and Kafka Connect give a name in a schema, the same in JSON and Avro.

A name that is not listed changes nothing: the value keeps the meaning of its physical type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from storage_lib.log_store.conversion.captured_value_type import Meaning, Spelling, ValueType

_DEBEZIUM = "io.debezium.time."
_CONNECT = "org.apache.kafka.connect.data."
CONNECT_DECIMAL = f"{_CONNECT}Decimal"
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
GEOMETRIES = tuple(f"io.debezium.data.geometry.{kind}" for kind in ("Geometry", "Geography", "Point"))
_SCALE, _PRECISION = "scale", "connect.decimal.precision"

_OF_NUMBERS = {
    f"{_DEBEZIUM}Date": (Meaning.DATE, None),
    f"{_DEBEZIUM}Time": (Meaning.TIME, "ms"),
    f"{_DEBEZIUM}MicroTime": (Meaning.TIME, "us"),
    f"{_DEBEZIUM}NanoTime": (Meaning.TIME, "ns"),
    f"{_DEBEZIUM}Timestamp": (Meaning.TIMESTAMP, "ms"),
    f"{_DEBEZIUM}MicroTimestamp": (Meaning.TIMESTAMP, "us"),
    f"{_DEBEZIUM}NanoTimestamp": (Meaning.TIMESTAMP, "ns"),
    f"{_CONNECT}Date": (Meaning.DATE, None),
    f"{_CONNECT}Time": (Meaning.TIME, "ms"),
    f"{_CONNECT}Timestamp": (Meaning.MOMENT, "ms"),
}
_OF_TEXT = {
    f"{_DEBEZIUM}IsoDate": Meaning.DATE,
    f"{_DEBEZIUM}IsoTime": Meaning.TIME,
    f"{_DEBEZIUM}IsoTimestamp": Meaning.TIMESTAMP,
    f"{_DEBEZIUM}ZonedTime": Meaning.TIME,
    f"{_DEBEZIUM}ZonedTimestamp": Meaning.INSTANT,
}
_OF_BYTES = {"io.debezium.data.Bits": Meaning.BITS}


def with_meaning(  # noqa: PLR0911  one per kind of type
    physical: ValueType, name: str | None, parameters: Mapping[str, Any]
) -> ValueType:
    """Return a physical type with the meaning that its name gives it."""
    if name is None:
        return physical
    named = replace(physical, name=name)
    match physical.meaning:
        case Meaning.INTEGER if name in _OF_NUMBERS:
            meaning, unit = _OF_NUMBERS[name]
            return ValueType(meaning=meaning, unit=unit, name=name)
        case Meaning.TEXT if name in _OF_TEXT:
            return ValueType(meaning=_OF_TEXT[name], spelling=Spelling.TEXT, name=name)
        case Meaning.BYTES if name in _OF_BYTES:
            return replace(named, meaning=_OF_BYTES[name])
        case Meaning.BYTES if name == CONNECT_DECIMAL:
            return decimal_of(parameters.get(_SCALE), parameters.get(_PRECISION), name)
        case Meaning.ROW if name == VARIABLE_SCALE_DECIMAL:
            return ValueType(meaning=Meaning.DECIMAL, spelling=Spelling.SCALED, name=name)
        case Meaning.ROW if name not in GEOMETRIES:
            return physical
        case _:
            return named


def decimal_of(scale: Any, precision: Any, name: str) -> ValueType:
    """Return the type of a decimal that is written as its unscaled value; Connect's scale is 0 unless declared."""
    return ValueType(
        meaning=Meaning.DECIMAL,
        spelling=Spelling.UNSCALED,
        scale=int(scale or 0),
        precision=None if precision is None else int(precision),
        name=name,
    )
