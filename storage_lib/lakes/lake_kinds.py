"""The formats of tables that catalogs of a session may have, by their option ``type``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib.lakes.lake_version import LakeVersion

DELTA = "delta"
ICEBERG = "iceberg"
LAKES = (DELTA, ICEBERG)
TYPE = "type"
WAREHOUSE = "warehouse"
URI = "uri"
OPTIONS_OF_REST = (URI, "token", "credential", "oauth2-server-uri", "scope")
"""Options of a REST catalog of Iceberg, by PyIceberg's names; the last four are how the client shows who it is."""


def version_class(kind: str) -> type[LakeVersion]:
    """Return the class of versions of a format. Raises ``InvalidInputError`` if its package is missing."""
    if kind == DELTA:
        from storage_lib.lakes.delta_table import DeltaVersion

        return DeltaVersion
    if kind == ICEBERG:
        from storage_lib.lakes.iceberg_table import IcebergVersion

        return IcebergVersion
    raise AssertionError(kind)
