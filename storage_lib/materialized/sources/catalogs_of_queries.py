"""The catalogs of other formats that a query reads: what a definition stores of them, and how a refresh opens them.

A definition stores the options by which a catalog is opened, but no secret. A refresh takes the secrets from the
session that runs it, if that has opened the same catalog, or else from the environment variable
``DYNAMIC_TABLE_CATALOG_<NAME>``: a JSON object of options, among them the address of the catalog. A secret is sent only
to the address that was given together with it, because the address in a definition is chosen by the table's creator.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.lakes.lake_kinds import LAKES, TYPE, URI, WAREHOUSE
from storage_lib.lakes.open_lake import open_lake
from storage_lib.schema.options.materialized_table import CatalogOfQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.lakes.lake_version import LakeCatalog

Catalogs = Mapping[str, Mapping[str, str]]
"""Options of catalogs, secrets included, by the names of the catalogs."""

_PARTS = 3
_ADDRESSES = (WAREHOUSE, URI)
_SHOWN = frozenset({TYPE, WAREHOUSE, URI, "oauth2-server-uri", "scope"})
_SHOWN_OF_STORES = frozenset(
    {
        "account-name",
        "allow-http",
        "connect-timeout",
        "endpoint",
        "max-retries",
        "path-style",
        "path-style-access",
        "region",
        "timeout",
        "virtual-hosted-style-request",
    }
)
"""Settings of stores that are not secret; all others are treated as secrets."""

_SESSION: ContextVar[Catalogs | None] = ContextVar("catalogs of the session", default=None)


@contextmanager
def catalogs_of_session(catalogs: Catalogs) -> Iterator[None]:
    """Let definitions in the body use the secrets of these catalogs."""
    token = _SESSION.set(catalogs)
    try:
        yield
    finally:
        _SESSION.reset(token)


def catalogs_of_query(name: str, tables: Sequence[str], catalogs: Catalogs) -> tuple[CatalogOfQuery, ...]:
    """Return what the definition of table ``name`` stores of the catalogs whose ``tables`` (three parts) it reads.

    Raises ``InvalidInputError`` for a table of an unknown catalog or of one whose tables are not sources.
    """
    read: dict[str, list[str]] = {}
    for each in tables:
        parts = each.split(".")
        if len(parts) != _PARTS:
            message = (
                f"table {name}: {each} is not named by catalog, database and table; a name with dots can't be read"
            )
            raise InvalidInputError(message)
        read.setdefault(parts[0], []).append(".".join(parts[1:]))
    return tuple(_stored(name, catalog, catalogs, of) for catalog, of in sorted(read.items()))


def opened(table: str, catalog: CatalogOfQuery) -> LakeCatalog:
    """Open a catalog of the query of ``table``. Raises ``InvalidInputError`` if a secret is missing."""
    options = dict(catalog.options)
    if catalog.secrets:
        options |= _secrets_of(table, catalog)
    return open_lake(catalog.name, options)


def variable_of(catalog: str) -> str:
    """Return the environment variable with the options of a catalog."""
    return f"DYNAMIC_TABLE_CATALOG_{re.sub('[^A-Za-z0-9]', '_', catalog).upper()}"


def _stored(name: str, catalog: str, catalogs: Catalogs, tables: Sequence[str]) -> CatalogOfQuery:
    options = catalogs.get(catalog)
    if options is None:
        known = f"; the catalogs are {', '.join(sorted(catalogs))}" if catalogs else ""
        message = f"table {name}: its query reads catalog {catalog}, whose options are not given{known}"
        raise InvalidInputError(message)
    if options.get(TYPE) not in LAKES:
        message = (
            f"table {name}: its query reads catalog {catalog} of type {options.get(TYPE)}; materialized tables read "
            f"catalogs of the types {', '.join(LAKES)}"
        )
        raise InvalidInputError(message)
    return CatalogOfQuery(
        name=catalog,
        options=tuple((key, value) for key, value in sorted(options.items()) if _is_shown(key)),
        secrets=tuple(key for key in sorted(options) if not _is_shown(key)),
        tables=tuple(sorted(tables)),
    )


def _is_shown(key: str) -> bool:
    store, _, setting = key.partition(".")
    of_store = setting.replace("_", "-").replace(".", "-")
    return key in _SHOWN or (bool(setting) and store in ("s3", "gs", "azure") and of_store in _SHOWN_OF_STORES)


def _secrets_of(table: str, catalog: CatalogOfQuery) -> dict[str, str]:
    stored = dict(catalog.options)
    for given in ((_SESSION.get() or {}).get(catalog.name), _of_environment(catalog.name)):
        if given is None or any(given.get(key) != stored.get(key) for key in _ADDRESSES):
            continue
        if all(key in given for key in catalog.secrets):
            return {key: given[key] for key in catalog.secrets}
    address = {key: stored[key] for key in _ADDRESSES if key in stored}
    example = json.dumps({**address, **dict.fromkeys(catalog.secrets, "...")})
    message = (
        f"table {table} reads catalog {catalog.name}, and its options {', '.join(catalog.secrets)} are secrets, which "
        f"no table stores: set the environment variable {variable_of(catalog.name)} of this process to {example}, or "
        "run CREATE CATALOG in the session that refreshes"
    )
    raise InvalidInputError(message)


def _of_environment(catalog: str) -> dict[str, str] | None:
    name = variable_of(catalog)
    text = os.environ.get(name)
    if not text:
        return None
    try:
        found = json.loads(text)
        return {str(key): str(value) for key, value in found.items()}
    except (ValueError, AttributeError):
        # The text has secrets, and an error of the parser may show some.
        message = f"the environment variable {name} is not a JSON object of options"
        raise InvalidInputError(message) from None
