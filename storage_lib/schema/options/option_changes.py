"""Changes of an existing table's options: which are allowed, and which options name columns."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.catalog_options import is_of_catalog
from storage_lib.schema.options.external_paths import PATHS_OPTION, ROOT_PATH_OPTION, STRATEGY_OPTION
from storage_lib.schema.options.field_options import DEFAULT_VALUE, PREFIX, SEQUENCE_GROUP, field_option
from storage_lib.schema.options.known_options import refuse_unknown_options
from storage_lib.schema.options.metadata_options import column_of_key, metadata_key
from storage_lib.schema.options.secret_refusal import TO_THE_CATALOG, refuse_secret
from storage_lib.schema.options.table_options import OWN_PREFIX, TableOptions, canonical_key

_FIXED = frozenset(
    {
        "aggregation.remove-record-on-delete",
        "bucket",
        "bucket-function.type",
        "bucket-key",
        "data-file.path-directory",
        "deletion-vectors.enabled",
        "ignore-delete",
        "merge-engine",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "partition",
        "partition.default-name",
        "partition.legacy-name",
        "path",
        "primary-key",
        "row-kind.field",
        "rowkind.field",
        "sequence.field",
        "sequence.field.sort-order",
        "type",
        "write-mode",
    }
)
_FIXED_PREFIXES = ("log.", "fields.", OWN_PREFIX)
"""Prefixes of options that determine how rows are laid out, merged and logged; existing data depends on them."""
_READERS_PREFIX = "log.scan"
"""Prefix of options for reading the log, which do not affect its content."""

_NAMING_COLUMNS = ("bucket-key", "sequence.field", "partial-update.remove-record-on-sequence-group")


def changed_options(options: Mapping[str, str], key: str, value: str | None) -> dict[str, str]:
    """Set an option, or remove it if ``value`` is None.

    Raises ``InvalidInputError`` for options that are fixed when a table is created, secrets and invalid values.
    """
    name = canonical_key(key)
    if options.get(name) == value:
        return dict(options)
    is_changeable = name.startswith(_READERS_PREFIX) or field_option(name)[1] == DEFAULT_VALUE
    refuse_secret(name, value or "", "option")
    if name == ROOT_PATH_OPTION:
        message = (
            f"option {key} can only be set on a table, because it is converted to a directory with the table's name; "
            f"set {PATHS_OPTION} and {STRATEGY_OPTION} instead"
        )
        raise InvalidInputError(message)
    if value is not None and name not in options:
        if is_of_catalog(name):
            message = f"option {key} configures the catalog; {TO_THE_CATALOG}"
            raise InvalidInputError(message)
        refuse_unknown_options((key,))
    if name in _FIXED or (name.startswith(_FIXED_PREFIXES) and not is_changeable):
        message = (
            f"option {key} was fixed when the table was created, for its files and its log depend on it; create a "
            "new table"
        )
        raise InvalidInputError(message)
    changed = {other: text for other, text in options.items() if other != name}
    if value is not None:
        changed[name] = value
    TableOptions.parse(changed)
    return changed


def options_naming(options: Mapping[str, str], column: str) -> list[str]:
    """Return the keys of options that name a column."""
    return [key for key, value in options.items() if column in (*_names_in_key(key), *_names_in_value(key, value))]


def options_with_renamed(options: Mapping[str, str], column: str, new_name: str) -> dict[str, str]:
    """Replace a column's name in the options by its new name."""

    def renamed(text: str) -> str:
        return ",".join(new_name if name == column else name for name in _names(text))

    changed = {}
    for key, value in options.items():
        in_key, suffix = field_option(key)
        new_key = key
        if column_of_key(key) == column:
            new_key = metadata_key(new_name)
        elif column in _names_in_key(key):
            new_key = f"{PREFIX}{renamed(in_key)}{suffix}"
        changed[new_key] = renamed(value) if column in _names_in_value(key, value) else value
    return changed


def _names_in_key(key: str) -> list[str]:
    names, suffix = field_option(key)
    return _names(names) if suffix == SEQUENCE_GROUP else [names] if suffix else []


def _names_in_value(key: str, value: str) -> list[str]:
    _, suffix = field_option(key)
    return _names(value) if key in _NAMING_COLUMNS or suffix == SEQUENCE_GROUP else []


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
