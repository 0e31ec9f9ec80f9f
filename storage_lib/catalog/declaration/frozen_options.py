"""Options that CREATE stores in a new table's schema. Declared options override defaults of the connection.

Servers and secrets are never stored; they are looked up in the connection each time.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.catalog.declaration.kind_options import with_kind_options
from storage_lib.catalog.declaration.log_refusals import refuse_client_without_servers
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.schema.options.catalog_options import is_of_catalog
from storage_lib.schema.options.external_paths import with_root_path
from storage_lib.schema.options.known_options import refuse_unknown_options
from storage_lib.schema.options.option_precedence import effective_options, merged_options
from storage_lib.schema.options.secret_refusal import refuse_secret
from storage_lib.schema.options.table_options import (
    KAFKA_PREFIX,
    REGISTRY_PREFIX,
    LogSystem,
    canonical_key,
    is_secret_option,
)

_TOPIC_OPTION = "log.kafka.topic"
_PINNED = {
    "snapshot.num-retained.min": "2147483647",
    "snapshot.num-retained.max": "2147483647",
    "partition.legacy-name": "false",
}
"""Prevents other engines' commits from expiring our snapshots, and names DATE partitions as Hive does."""


def frozen_options(
    name: TableName, declared: Mapping[str, str], connection: Mapping[str, str], *, has_primary_key: bool
) -> dict[str, str]:
    """Return the options of the new table's schema, without its uuid; ``connection`` has canonical keys.

    Raises ``InvalidInputError`` for secrets, unknown options and options that belong to the connection.
    """
    given = {canonical_key(key): str(value) for key, value in declared.items()}
    for key, value in given.items():
        refuse_secret(key, value, f"table {name}: option")
        if key.startswith(STORE_OPTION_PREFIXES):
            message = f"table {name}: option {key} configures the storage; give it to the catalog (the connection)"
            raise InvalidInputError(message)
        if is_of_catalog(key):
            message = f"table {name}: option {key} configures the catalog; give it to the catalog (the connection)"
            raise InvalidInputError(message)
    refuse_unknown_options(given, f"table {name}")
    of_connections = (KAFKA_PREFIX, REGISTRY_PREFIX, *STORE_OPTION_PREFIXES)
    defaults = {
        key: value
        for key, value in connection.items()
        if not key.startswith(of_connections) and not is_secret_option(key, value) and not is_of_catalog(key)
    }
    wanted = with_root_path(merged_options(table=given, connection=defaults), str(name))
    merged = {**_PINNED, **with_kind_options(str(name), wanted, has_primary_key=has_primary_key)}
    effective = effective_options(table=merged, connection=connection)
    refuse_client_without_servers(str(name), effective)
    merged["log.system"] = str(effective.effective_log_system)
    if effective.effective_log_system is LogSystem.KAFKA:
        merged.setdefault(_TOPIC_OPTION, str(name))
    return merged


def state_options(declared: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a state of a materialized table: without a log, and never expired by other engines."""
    return {**_PINNED, "log.system": str(LogSystem.NONE), **declared}
