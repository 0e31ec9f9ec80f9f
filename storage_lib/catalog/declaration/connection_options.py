"""Options that a connection may have: those of new tables, of its storage and of the catalog itself."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.schema.options.catalog_options import catalog_option_keys, is_of_catalog
from storage_lib.schema.options.known_options import is_known_option, unknown_option


def refuse_unknown_of_connection(options: Mapping[str, str]) -> None:
    """Raise ``InvalidInputError`` for an unknown option, with the nearest known one."""
    for key in options:
        if not is_option_of_connection(key):
            raise unknown_option(key, "catalog", catalog_option_keys())


def is_option_of_connection(key: str) -> bool:
    """Whether ``key`` is an option that a connection may have."""
    return is_known_option(key) or is_of_catalog(key) or key.startswith(STORE_OPTION_PREFIXES)
