"""Options of single columns, ``fields.<column>.<what>``, most of them for partial-update and aggregation tables.

fields.<f>.aggregate-function    how the values of f in several versions are combined
fields.<f>.ignore-retract        retractions leave f unchanged
fields.<f>.list-agg-delimiter    separator of listagg
fields.<f>.distinct              listagg and collect keep each element once
fields.<f,g>.sequence-group      columns that are updated together, by the one with the greatest f, g
fields.<f>.default-value         value written if the input has none for f (default_values.py), for any table
fields.default-aggregate-function
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.option_values import parse_boolean, parse_names

PREFIX = "fields."
DEFAULT_FUNCTION = "fields.default-aggregate-function"
_FUNCTION = ".aggregate-function"
_IGNORE_RETRACT = ".ignore-retract"
_DELIMITER = ".list-agg-delimiter"
_DISTINCT = ".distinct"
SEQUENCE_GROUP = ".sequence-group"
DEFAULT_VALUE = ".default-value"
SUFFIXES = (_FUNCTION, _IGNORE_RETRACT, _DELIMITER, _DISTINCT, SEQUENCE_GROUP, DEFAULT_VALUE)
DELIMITER_DEFAULT = ","


@dataclass(frozen=True, kw_only=True)
class SequenceGroup:
    """Columns updated together: ``members`` take the values of the row with the greatest ``fields``, in order."""

    fields: tuple[str, ...]
    members: tuple[str, ...]

    @property
    def option(self) -> str:
        """Key of the option that declares the group."""
        return f"{PREFIX}{','.join(self.fields)}{SEQUENCE_GROUP}"


@dataclass(frozen=True, kw_only=True)
class FieldOptions:
    """Options of single columns, not checked against the table's columns."""

    functions: Mapping[str, str] = field(default_factory=dict)
    default_function: str | None = None
    ignore_retract: frozenset[str] = frozenset()
    distinct: frozenset[str] = frozenset()
    delimiters: Mapping[str, str] = field(default_factory=dict)
    sequence_groups: tuple[SequenceGroup, ...] = ()
    keys_by_column: Mapping[str, str] = field(default_factory=dict)
    """For messages: one option that names the column, by column."""

    def function_of(self, column: str) -> str | None:
        """Return the column's own aggregate function, or the default one."""
        return self.functions.get(column, self.default_function)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> FieldOptions:
        """Parse the options that begin with ``fields.``; ignore all others.

        Raises ``InvalidInputError`` for an invalid key or value.
        """
        functions: dict[str, str] = {}
        flags: dict[str, set[str]] = {_IGNORE_RETRACT: set(), _DISTINCT: set()}
        delimiters: dict[str, str] = {}
        groups: list[SequenceGroup] = []
        keys: dict[str, str] = {}
        for key, text in sorted(options.items()):
            if not key.startswith(PREFIX) or key == DEFAULT_FUNCTION:
                continue
            column, suffix = field_option(key)
            if not suffix:
                message = (
                    f"unknown option {key!r}; options of a column are fields.<column> and one of {', '.join(SUFFIXES)}"
                )
                raise InvalidInputError(message)
            if suffix == SEQUENCE_GROUP:
                group = SequenceGroup(fields=_names(key, column), members=_names(key, text))
                groups.append(group)
                keys.update(dict.fromkeys((*group.fields, *group.members), key))
                continue
            if suffix == DEFAULT_VALUE:
                continue
            keys[column] = key
            if suffix == _FUNCTION:
                functions[column] = text.strip()
            elif suffix == _DELIMITER:
                delimiters[column] = text
            elif _boolean(key, text):
                flags[suffix].add(column)
        return cls(
            functions=functions,
            default_function=options.get(DEFAULT_FUNCTION),
            ignore_retract=frozenset(flags[_IGNORE_RETRACT]),
            distinct=frozenset(flags[_DISTINCT]),
            delimiters=delimiters,
            sequence_groups=tuple(groups),
            keys_by_column=keys,
        )


def field_option(key: str) -> tuple[str, str]:
    """Split ``fields.<columns>.<what>`` into the comma-separated columns and the suffix; two empty strings if none."""
    for suffix in SUFFIXES:
        if key.startswith(PREFIX) and key.endswith(suffix) and len(key) > len(PREFIX + suffix):
            return key.removeprefix(PREFIX).removesuffix(suffix), suffix
    return "", ""


def _names(key: str, text: str) -> tuple[str, ...]:
    try:
        return parse_names(text)
    except ValueError as error:
        message = f"option {key} is {text!r}; {error}"
        raise InvalidInputError(message) from error


def _boolean(key: str, text: str) -> bool:
    try:
        return parse_boolean(text)
    except ValueError as error:
        message = f"option {key} is {text!r}; {error}"
        raise InvalidInputError(message) from error
