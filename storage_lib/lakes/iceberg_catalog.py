"""Iceberg tables: those in the directories of a warehouse, and those of a REST catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES, store_family
from storage_lib.lakes.iceberg_history import IcebergHistory
from storage_lib.lakes.iceberg_table import IcebergVersion, version_of
from storage_lib.lakes.lake_directories import LakeDirectories
from storage_lib.lakes.lake_kinds import OPTIONS_OF_REST
from storage_lib.lakes.lake_version import NEWEST, AsOf
from storage_lib.schema.options.nearest import did_you_mean

with importing_for("a catalog of Iceberg", InvalidInputError, "iceberg"):
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    from storage_lib.iceberg.register.rest_client import RestClient, reporting

_METADATA = "metadata"
_VERSIONED = re.compile(r"v(\d+)\.(gz\.)?metadata\.json(\.gz)?")
_SETTINGS = {
    "aws_endpoint": "s3.endpoint",
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "aws_region": "s3.region",
}
"""PyIceberg's names of a store's settings."""


class IcebergDirectories(LakeDirectories):
    """The Iceberg tables below a directory, as a Hadoop catalog lays them out: a ``LakeCatalog``."""

    def __init__(self, name: str, warehouse: str, options: Mapping[str, str]) -> None:
        """``options`` are those of the warehouse's store; raises as ``LakeDirectories``."""
        super().__init__(name, warehouse, options, marker=_METADATA, readers="tables of Iceberg")
        self._storage_options = _storage_options_of(self.root, options)

    def version(self, database: str, table: str, as_of: AsOf = NEWEST) -> IcebergVersion:
        """See ``LakeCatalog``."""
        name = f"{self.name}.{database}.{table}"
        metadata = self._newest_metadata(name, self.location(database, table))
        return version_of(name, metadata, self._storage_options, as_of)

    def history(self, database: str, table: str) -> IcebergHistory:
        """See ``LakeCatalog``."""
        return IcebergHistory.of(self.version(database, table))

    def _newest_metadata(self, name: str, location: str) -> str:
        """Return the metadata file with the highest number.

        A Hadoop catalog commits by creating it; those of other catalogs may be left by commits that failed.
        """
        directory = f"{location}/{_METADATA}"
        found = [_VERSIONED.fullmatch(each.name) for each in self.file_io.list_directory(directory)]
        newest = max((each for each in found if each is not None), key=lambda each: int(each[1]), default=None)
        if newest is None:
            message = (
                f"table {name} has no metadata file v<n>.metadata.json in {directory}, so another catalog knows which "
                "one is current; open that catalog by its 'uri'"
            )
            raise InvalidInputError(message)
        return f"{directory}/{newest[0]}"


class IcebergRest:
    """The Iceberg tables of a REST catalog: a ``LakeCatalog``."""

    def __init__(self, name: str, options: Mapping[str, str], warehouse: str | None) -> None:
        """``options`` are those of ``OPTIONS_OF_REST`` and of the store. Connects.

        Raises ``UnavailableError`` if the server does not answer, ``InvalidInputError`` if it refuses the client.
        """
        self.name = name
        self._subject = f"the REST catalog of {name}"
        stores = {key: value for key, value in options.items() if key.startswith(STORE_OPTION_PREFIXES)}
        self._storage_options = _storage_options_of("s3://bucket", stores) if stores else {}
        given = {key: value for key, value in options.items() if key in OPTIONS_OF_REST}
        with reporting(self._subject):
            self._rest = RestClient(name, given if warehouse is None else {**given, "warehouse": warehouse})

    def databases(self) -> list[str]:
        """See ``LakeCatalog``; of nested namespaces only the outer ones, because a query names one."""
        with reporting(self._subject):
            return sorted(each[0] for each in self._rest.list_namespaces() if len(each) == 1)

    def tables(self, database: str) -> list[str]:
        """See ``LakeCatalog``."""
        with reporting(self._subject):
            try:
                return sorted(each[-1] for each in self._rest.list_tables((database,)))
            except NoSuchNamespaceError as error:
                raise self._no_database(database) from error

    def version(self, database: str, table: str, as_of: AsOf = NEWEST) -> IcebergVersion:
        """See ``LakeCatalog``."""
        name = f"{self.name}.{database}.{table}"
        with reporting(self._subject):
            try:
                loaded = self._rest.load_table((database, table))
            except NoSuchNamespaceError as error:
                raise self._no_database(database) from error
            except NoSuchTableError as error:
                message = f"table {name} does not exist{did_you_mean(table, self.tables(database))}"
                raise NotFoundError(message) from error
        settings = {**_settings_of_server(loaded.io.properties), **self._storage_options}
        return version_of(name, loaded.metadata_location, settings, as_of)

    def history(self, database: str, table: str) -> IcebergHistory:
        """See ``LakeCatalog``."""
        return IcebergHistory.of(self.version(database, table))

    def _no_database(self, database: str) -> NotFoundError:
        message = f"database {self.name}.{database} does not exist{did_you_mean(database, self.databases())}"
        return NotFoundError(message)


def _settings_of_server(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of the store that a server gave to its client, such as credentials for a table."""
    return {key: str(value) for key, value in properties.items() if key.startswith(("s3.", "client."))}


def _storage_options_of(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a store as PyIceberg names them. Raises ``InvalidInputError`` for a setting it lacks."""
    if store_family(root) == "file":
        return {}
    from storage_lib.io.remote.object_store_settings import settings_by_store_name

    settings = settings_by_store_name(root, options)
    settings.pop("allow_http", None)
    unknown = sorted(settings.keys() - _SETTINGS.keys())
    if unknown:
        known = "s3.endpoint, s3.region, s3.access-key, s3.secret-key and s3.session-token"
        message = f"Iceberg tables are read with the settings {known}, not with {', '.join(unknown)}"
        raise InvalidInputError(message)
    return {_SETTINGS[key]: value for key, value in settings.items()}
