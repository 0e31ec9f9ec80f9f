"""Which options of a table may still be changed once it is there, and which hold names of columns."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_options import OWN_PREFIX, TableOptions, canonical_key, is_secret

_FIXED = frozenset(
    {
        "bucket",
        "bucket-function.type",
        "bucket-key",
        "changelog-producer",
        "data-file.path-directory",
        "deletion-vectors.enabled",
        "ignore-delete",
        "merge-engine",
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
"""How rows are laid out, merged and logged: files and records that are there already were made by them."""

_NAMING_COLUMNS = ("bucket-key", "sequence.field")
_OF_FIELDS = "fields."


def changed_options(options: Mapping[str, str], key: str, value: str | None) -> dict[str, str]:
    """The options with one set, or removed where ``value`` is None.

    Raises ``InvalidInputError`` for options that are fixed when a table is created, secrets, and values that can't be.
    """
    name = canonical_key(key)
    if options.get(name) == value:
        return dict(options)
    if name in _FIXED or name.startswith(_FIXED_PREFIXES):
        message = (
            f"option {key} was fixed when the table was created, for its files and its log depend on it; create a "
            "new table"
        )
        raise InvalidInputError(message)
    if is_secret(name):
        message = f"option {key} is a secret; give it to the catalog (the connection), not to the table"
        raise InvalidInputError(message)
    changed = {other: text for other, text in options.items() if other != name}
    if value is not None:
        changed[name] = value
    TableOptions.parse(changed)
    return changed


def options_naming(options: Mapping[str, str], column: str) -> list[str]:
    """The keys of options that speak of a column."""
    listed = [key for key in _NAMING_COLUMNS if column in _names(options.get(key, ""))]
    return listed + [key for key in options if key.startswith(f"{_OF_FIELDS}{column}.")]


def options_with_renamed(options: Mapping[str, str], column: str, new_name: str) -> dict[str, str]:
    """The same options, speaking of a column by its new name."""
    renamed = {}
    for key, value in options.items():
        if key in _NAMING_COLUMNS:
            names = [new_name if name == column else name for name in _names(value)]
            renamed[key] = ",".join(names)
        elif key.startswith(f"{_OF_FIELDS}{column}."):
            renamed[f"{_OF_FIELDS}{new_name}.{key.removeprefix(f'{_OF_FIELDS}{column}.')}"] = value
        else:
            renamed[key] = value
    return renamed


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
