"""Reference of table options, the source of docs/options.md, ``dynamic-table options`` and SHOW OPTIONS."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.known_options import is_known_option, unknown_option
from storage_lib.schema.options.option_values import (
    parse_bytes,
    parse_millis,
    parse_retention,
    parse_size,
    parse_wait,
    spelled_bytes,
    spelled_millis,
)
from storage_lib.schema.options.paimon_options import PASSED_THROUGH, PREFIXES_PASSED_THROUGH, REFUSED_FEATURES
from storage_lib.schema.options.source_options import SOURCE_OPTIONS
from storage_lib.schema.options.table_options import TableOptions, canonical_key

__all__ = [
    "OptionDescription",
    "describe_options",
    "family_descriptions",
    "option_descriptions",
    "paimon_descriptions",
    "source_descriptions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDescription:
    """An option of tables. ``default`` is text as a user would write it, empty if there is none."""

    option: str
    default: str
    meaning: str


_FAMILIES = {
    "bucket-key": "Comma-separated columns whose hash chooses a row's bucket, part of the primary key if there is one; "
    "default: the primary key without the partition columns, or all columns of a table without a primary key.",
    "bucket-function.type": "Function that chooses a row's bucket; default is the only one by which rows are written.",
    "fields.<column>.aggregate-function": "Function that combines the versions of a column, for "
    "merge-engine=aggregation and partial-update: sum, product, count, max, min, last_value, last_non_null_value, "
    "first_value, first_non_null_value, bool_and, bool_or, collect, merge_map or listagg.",
    "fields.default-aggregate-function": "Function of the columns that have none of their own.",
    "fields.<column>.ignore-retract": "true: deletions and pre-images leave the column unchanged.",
    "fields.<column>.distinct": "true: listagg and collect keep each element once.",
    "fields.<column>.list-agg-delimiter": "Separator of listagg; default: a comma.",
    "fields.<columns>.sequence-group": "For merge-engine=partial-update: comma-separated columns that are updated "
    "together, where the sequence columns in the option's name are not smaller than the stored ones. A row in which "
    "these are null changes none of them; as in Paimon, its values show as long as its key has no other row.",
    "fields.<column>.default-value": "Value written where the input has none for the column.",
    "column.<column>.metadata": "Metadata of records that ingest fills the column from, as METADATA FROM declares it, "
    "such as value.source.lsn.",
    "log.kafka.<setting>": "Setting of the Kafka client, for example log.kafka.security.protocol. Part of the "
    "catalog's options, not of a table's.",
    "log.schema-registry.<setting>": "url, username and password of the schema registry, for "
    "log.format=debezium-avro. Part of the catalog's options, not of a table's.",
    "dynamic-table.uuid": "Identity of the table, set when it is created.",
    "x.<name>": "Free for your own notes, as is user.<name>.",
}
"""Options whose key contains a name, and those that are parsed with the schema."""


@cache
def option_descriptions() -> tuple[OptionDescription, ...]:
    """Return every option with a fixed key and an effect here, sorted by key."""
    described = (
        OptionDescription(
            option=each.metadata["key"],
            default="" if each.default is None else _spelled_default(each.default, each.metadata["parse"]),
            meaning=each.metadata["text"],
        )
        for each in fields(TableOptions)
        if "key" in each.metadata
    )
    return tuple(sorted(described, key=lambda each: each.option))


def family_descriptions() -> tuple[OptionDescription, ...]:
    """Return options whose key contains a name, such as a column's, in angle brackets, and the bucket options."""
    return tuple(OptionDescription(option=key, default="", meaning=text) for key, text in _FAMILIES.items())


def paimon_descriptions() -> tuple[OptionDescription, ...]:
    """Return Paimon's options without an effect here, each with the reason; ``*`` in a key is a wildcard."""
    by_key = {key: text for text, keys in (*PASSED_THROUGH.items(), *REFUSED_FEATURES.items()) for key in sorted(keys)}
    by_key |= {f"{prefix}*": text for prefix, text in PREFIXES_PASSED_THROUGH.items()}
    return tuple(OptionDescription(option=key, default="", meaning=text) for key, text in by_key.items())


def source_descriptions() -> tuple[OptionDescription, ...]:
    """Return the options of a source of changes, which are given to ``ingest`` or a stream."""
    return tuple(
        OptionDescription(option=key, default=default, meaning=meaning)
        for key, (default, meaning) in SOURCE_OPTIONS.items()
    )


def describe_options(prefix: str = "") -> list[OptionDescription]:
    """Describe the options of tables whose key begins with ``prefix``; an older spelling finds its option.

    Without a prefix, options of sources and Paimon's options without an effect here are omitted.

    Raises ``InvalidInputError``, with the nearest key, if there is no such option.
    """
    ours = [*option_descriptions(), *family_descriptions()]
    if not prefix:
        return ours
    key = canonical_key(prefix)
    found = [each for each in (*ours, *source_descriptions(), *paimon_descriptions()) if _matches(each.option, key)]
    if found:
        return found
    if is_known_option(key):
        message = f"option {prefix!r} has no description; it is set by the library or by another engine"
        raise InvalidInputError(message)
    raise unknown_option(prefix)


def _matches(option: str, key: str) -> bool:
    """Whether a key or prefix matches ``option``, in which a placeholder matches any name."""
    pattern = re.sub(r"<\w+>|\\\*", ".+", re.escape(option))
    return option.startswith(key) or re.fullmatch(pattern, key) is not None


def _spelled_default(value: object, parse: Callable[[str], object]) -> str:
    """Format the default as a user would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and parse in (parse_bytes, parse_size):
        return spelled_bytes(value)
    if isinstance(value, int) and parse in (parse_millis, parse_retention, parse_wait):
        return spelled_millis(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)
