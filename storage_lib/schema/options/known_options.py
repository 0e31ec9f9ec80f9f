"""Known options. Unknown options that a user sets are refused, since they would have no effect.

    options of tables            table_options.py
    log.kafka.*, log.schema-registry.*, fields.*      the clients' and the columns'
    column.*, watermark.*        computed columns, columns with metadata and watermarks, as CREATE TABLE writes them
    options of Paimon            for other engines (paimon_options.py)
    <name>.*                     of an installed package that adds the log system, catalog or file format <name>
    x.*, user.*                  free for users' notes

Tables that other engines created may have any options; only options that a user sets here are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.extensions import Extension, added_names
from storage_lib.schema.options.field_options import PREFIX as FIELDS_PREFIX
from storage_lib.schema.options.nearest import nearest
from storage_lib.schema.options.paimon_options import PASSED_THROUGH, PREFIXES_PASSED_THROUGH, REFUSED_FEATURES
from storage_lib.schema.options.table_options import (
    KAFKA_PREFIX,
    OWN_PREFIX,
    REGISTRY_PREFIX,
    SESSION_PREFIX,
    canonical_key,
    option_keys,
)

FREE_PREFIXES = ("x.", "user.")
_OF_FORMAT = ("bucket-key", "bucket-function.type", "path", "type")
"""Options interpreted when the schema is read, so they are not fields of ``TableOptions``."""
_PREFIXES = (KAFKA_PREFIX, REGISTRY_PREFIX, FIELDS_PREFIX, OWN_PREFIX, *FREE_PREFIXES)
_VIRTUAL_COLUMNS = re.compile(r"column\..+\.(expression|comment|metadata)|watermark\..+")
_INDEX_OF_KEYS = re.compile(r"pk-[a-z-]+\.index\.columns")
_LIKE_ENOUGH = 0.7

_REASONS = {
    "index-key": "rows are found by the primary key (or bucket-key) only; declare a primary key",
    "file.path": "that is a field of DESCRIBE, and follows from the warehouse, the database and the table's name",
    "topic": "the topic is log.kafka.topic",
    "key.format": "that is an option of a connector; the log's keys have log.key.format",
    "value.format": "that is an option of a connector; the log's values have log.format",
    "properties.bootstrap.servers": "that is an option of a connector; the log has log.kafka.bootstrap.servers",
    "scan.startup.mode": "that is an option of a connector; streams start where log.scan says",
    "table.type": "that is an option of Hudi's; tables here are read merged, copy-on-write or not",
    "write.precombine.field": "that is an option of Hudi's; sequence.field names the column that orders versions",
    "write.operation": "that is an option of Hudi's; use INSERT INTO or INSERT OVERWRITE",
}
"""Hints for options of documents that this library follows, and of other connectors that users know."""


def is_known_option(key: str) -> bool:
    """Whether an option of a table has an effect here or in Paimon."""
    name = canonical_key(key)
    if name in _table_keys() or name.startswith((*_PREFIXES, *PREFIXES_PASSED_THROUGH)):
        return True
    if _VIRTUAL_COLUMNS.fullmatch(name) or _INDEX_OF_KEYS.fullmatch(name):
        return True
    return is_of_package(name)


def is_passed_through(key: str) -> bool:
    """Whether the key is an option of Paimon without an effect here."""
    of_tables = {*option_keys(), *_OF_FORMAT}
    return key.startswith(tuple(PREFIXES_PASSED_THROUGH)) or (key in _table_keys() and key not in of_tables)


def is_of_package(key: str) -> bool:
    """Whether the key may be an option of an installed package."""
    names = [name for group in Extension for name in added_names(group)]
    return key.startswith(tuple(f"{prefix}{name}." for name in names for prefix in ("", "log.")))


def refuse_unknown_options(options: Iterable[str] | Mapping[str, str], what: str | None = None) -> None:
    """Raise ``InvalidInputError`` for the first unknown key; ``what`` names the options' owner in the message."""
    for key in options:
        if not is_known_option(key):
            raise unknown_option(key, what)


def unknown_option(key: str, what: str | None = None, more: Iterable[str] = ()) -> InvalidInputError:
    """Return the error for an unknown key, with a remedy; ``more`` are valid keys in addition to those of tables."""
    name = canonical_key(key)
    near = nearest(name, [*option_keys(), *_OF_FORMAT, *more], like_enough=_LIKE_ENOUGH)
    near = near or nearest(name.replace("_", "-"), [*_table_keys(), *more], like_enough=_LIKE_ENOUGH)
    if name in _REASONS:
        hint = _REASONS[name]
    elif near == name:
        hint = "it is an option of tables"
    elif near is not None:
        hint = f"did you mean {_spelled_as(key, near)!r}?"
    else:
        hint = (
            "`dynamic-table options`, storage_lib.describe_options() and SHOW OPTIONS in SQL list them. "
            "A note of your own has the prefix 'x.' or 'user.'"
        )
    return InvalidInputError(f"{f'{what}: ' if what else ''}unknown option {key!r}; {hint}")


def _spelled_as(given: str, key: str) -> str:
    return f"{SESSION_PREFIX}{key}" if given.startswith(SESSION_PREFIX) else key


@cache
def _table_keys() -> frozenset[str]:
    paimon = (key for keys in (*PASSED_THROUGH.values(), *REFUSED_FEATURES.values()) for key in keys)
    return frozenset((*option_keys(), *_OF_FORMAT, *paimon))
