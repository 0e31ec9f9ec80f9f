"""Options of a connection that choose and configure a catalog, with Paimon's keys. Never options of a table."""

from __future__ import annotations

from enum import StrEnum

METASTORE = "metastore"
URI = "uri"
CATALOG_KEY = "catalog-key"
JDBC_PREFIX = "jdbc."
HIVE_PREFIX = "hive."
LOCATION_IN_PROPERTIES = "location-in-properties"
LOCK_ENABLED = "lock.enabled"
LOCK_ACQUIRE_TIMEOUT = "lock-acquire-timeout"
LOCK_CHECK_MAX_SLEEP = "lock-check-max-sleep"
LOCK_TIMEOUT = "lock.timeout"
ICEBERG_REST_PREFIX = "iceberg.rest."
ICEBERG_REST_KEYS = tuple(
    f"{ICEBERG_REST_PREFIX}{name}" for name in ("uri", "warehouse", "token", "credential", "oauth2-server-uri", "scope")
)
"""The Iceberg REST catalog that views with ``metadata.iceberg.storage=rest-catalog`` are registered in."""
ICEBERG_HIVE_PREFIX = "iceberg.hive."
ICEBERG_HIVE_URI = f"{ICEBERG_HIVE_PREFIX}uri"
"""The Hive metastore that views with ``metadata.iceberg.storage=hive-catalog`` are registered in."""

_KEYS = frozenset(
    {
        *ICEBERG_REST_KEYS,
        ICEBERG_HIVE_URI,
        METASTORE,
        URI,
        CATALOG_KEY,
        LOCATION_IN_PROPERTIES,
        LOCK_ENABLED,
        LOCK_ACQUIRE_TIMEOUT,
        LOCK_CHECK_MAX_SLEEP,
        LOCK_TIMEOUT,
    }
)


class Metastore(StrEnum):
    """Kind of store for a catalog's entries."""

    FILESYSTEM = "filesystem"
    MEMORY = "memory"
    SQL = "sql"
    HIVE = "hive"


METASTORE_ALIASES = {"jdbc": Metastore.SQL}


def catalog_option_keys() -> list[str]:
    """Return the keys of the options without a prefix, sorted."""
    return sorted(_KEYS)


def is_of_catalog(key: str) -> bool:
    """Whether an option configures the catalog itself."""
    return key in _KEYS or key.startswith((JDBC_PREFIX, HIVE_PREFIX, ICEBERG_REST_PREFIX, ICEBERG_HIVE_PREFIX))
