"""The catalogs of others that a connection names by options ``iceberg.rest.*`` and ``iceberg.hive.uri``."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.iceberg.register.registration import Registration
from storage_lib.iceberg.register.view_choice import ViewChoice
from storage_lib.io.environment import Clock
from storage_lib.schema.options.catalog_options import ICEBERG_HIVE_URI, ICEBERG_REST_KEYS, ICEBERG_REST_PREFIX
from storage_lib.schema.options.table_options import IcebergStorage


def registration_of(
    choice: ViewChoice, connection: Mapping[str, str], *, table: str, location: str, clock: Clock
) -> Registration | None:
    """Return how the entry of a table is kept; None if it has none, or if the connection does not name the catalog.

    Raises ``InvalidInputError`` if a package is missing.
    """
    if choice.storage is IcebergStorage.REST_CATALOG:
        properties = _rest_properties(connection)
        if properties is None:
            return None
        from storage_lib.iceberg.register.rest_registration import RestRegistration

        return RestRegistration(table=table, entry=choice.entry, location=location, properties=properties)
    addresses = connection.get(ICEBERG_HIVE_URI) if choice.storage is IcebergStorage.HIVE_CATALOG else None
    if addresses is None:
        return None
    from storage_lib.iceberg.register.hive_registration import HiveRegistration

    return HiveRegistration(
        table=table, entry=choice.entry, location=location, addresses=addresses, option=ICEBERG_HIVE_URI, clock=clock
    )


def _rest_properties(connection: Mapping[str, str]) -> dict[str, str] | None:
    """Return PyIceberg's properties of the REST catalog; None if the connection names none."""
    given = {
        key.removeprefix(ICEBERG_REST_PREFIX): value for key, value in connection.items() if key in ICEBERG_REST_KEYS
    }
    return given if "uri" in given else None
