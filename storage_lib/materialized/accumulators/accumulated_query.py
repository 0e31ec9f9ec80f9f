"""Accumulators of a query with the types that Spark gives them, and the columns of the table that stores the state.

The state has a primary key: the keys of the groups, and ``null_keys``, a number whose bits say which of them are NULL.
A key that is NULL is stored as its type's default value, because columns of a primary key hold no NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from storage_lib.materialized.algebra import Accumulators, ItemTypes

NULL_KEYS = "null_keys"
_MOST_KEYS = 60
_DECIMAL = "decimal"
_DEFAULTS: Mapping[str, str] = {
    "boolean": "false",
    "tinyint": "0",
    "smallint": "0",
    "int": "0",
    "bigint": "0",
    _DECIMAL: "0",
    "string": "",
    "date": "1970-01-01",
    "timestamp": "1970-01-01 00:00:00",
    "timestamp_ntz": "1970-01-01 00:00:00",
}
"""Types of keys whose values are equal for Spark exactly if they are equal as a primary key; a collation is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatedQuery:
    """Accumulators of one query. ``form`` is equal for states whose columns have the same meaning.

    ``state`` are the columns of the stored state, and ``type_names`` their Spark types.
    """

    accumulators: Accumulators
    types: Mapping[str, ItemTypes]
    state: pa.Schema
    type_names: Mapping[str, str]
    form: str

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key of the table that stores the state."""
        return (NULL_KEYS, *self.accumulators.key_columns)


def default_of(type_name: str) -> str:
    """Return the value, as text, that stands for NULL in a key of this Spark type."""
    return _DEFAULTS[_family(type_name)]


def refusal_of_keys(type_names: Sequence[str]) -> str | None:
    """Return why keys of these Spark types can't be a primary key; None if they can."""
    if len(type_names) > _MOST_KEYS:
        return f"more than {_MOST_KEYS} keys"
    other = next((name for name in type_names if _family(name) not in _DEFAULTS), None)
    return None if other is None else f"keys of type {other.upper()}"


def _family(type_name: str) -> str:
    return _DECIMAL if type_name.startswith(f"{_DECIMAL}(") else type_name
