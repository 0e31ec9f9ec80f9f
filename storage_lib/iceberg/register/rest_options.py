"""Options ``iceberg.rest.*`` of a connection: the Iceberg REST catalog in which views are registered."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.schema.options.catalog_options import ICEBERG_REST_KEYS, ICEBERG_REST_PREFIX


def client_properties(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return PyIceberg's properties of the catalog that a connection names; None if it names none."""
    given = {key.removeprefix(ICEBERG_REST_PREFIX): value for key, value in options.items() if key in ICEBERG_REST_KEYS}
    return given if "uri" in given else None
