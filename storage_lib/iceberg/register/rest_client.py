"""A client of an Iceberg REST catalog, which trusts neither the server nor the tables to choose what runs here.

PyIceberg lets answers of the server and properties of a table name modules that it imports. This client keeps only
properties of an allow-list, always opens files by ``PyArrowFileIO``, and has a time limit for each request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from pyiceberg.catalog.rest import Endpoints, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    CommitFailedException,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table, TableIdentifier
from pyiceberg.table.update import AddSchemaUpdate, TableRequirement, TableUpdate
from requests.adapters import HTTPAdapter

from storage_lib.errors import InvalidInputError, UnavailableError

_TIMEOUT_SECONDS = 30
_OF_CONNECTION = frozenset(
    {"uri", "prefix", "warehouse", "token", "credential", "scope", "oauth2-server-uri", "namespace-separator"}
)
_OF_STORES = ("s3.", "client.")
_PASSING = (
    requests.ConnectionError,
    requests.Timeout,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)


class RestClient(RestCatalog):
    """A connection to a REST catalog. Threads may share it."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        """Connect; ``properties`` are PyIceberg's. Raises as PyIceberg does; see ``reporting``."""
        super().__init__(name, **properties)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates as PyIceberg does, which leaves out ``last-column-id`` of a schema: Nessie refuses that."""
        *namespace, name = table.name()
        identifier = TableIdentifier.model_validate({"namespace": namespace, "name": name})
        request = CommitTableRequest(identifier=identifier, requirements=requirements, updates=updates)
        body = json.loads(request.model_dump_json())
        for encoded, update in zip(body["updates"], updates, strict=True):
            if isinstance(update, AddSchemaUpdate):
                encoded["last-column-id"] = max(table.metadata.last_column_id, update.schema_.highest_field_id)
        place = self._split_identifier_for_path(identifier)
        url = self.url(Endpoints.update_table, prefixed=True, **place)
        answer = self._session.post(url, json=body)
        try:
            answer.raise_for_status()
        except requests.HTTPError as error:
            _handle_non_200_response(error, {409: CommitFailedException})
        return CommitTableResponse.model_validate_json(answer.text)

    def _create_session(self) -> requests.Session:
        self.properties = {
            key: value for key, value in self.properties.items() if key in _OF_CONNECTION or key.startswith(_OF_STORES)
        }
        session = super()._create_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Limited())
        return session

    def _load_file_io(self, properties: Mapping[str, Any] | None = None, location: str | None = None) -> FileIO:  # noqa: ARG002
        given = {**self.properties, **(properties or {})}
        return PyArrowFileIO({key: value for key, value in given.items() if key.startswith(_OF_STORES)})


class _Limited(HTTPAdapter):
    """Waits for an answer at most ``_TIMEOUT_SECONDS``."""

    def send(self, *args: Any, **options: Any) -> requests.Response:
        options["timeout"] = options.get("timeout") or _TIMEOUT_SECONDS
        return super().send(*args, **options)


@contextmanager
def reporting(subject: str) -> Iterator[None]:
    """Convert errors of a client: ``UnavailableError`` if it may pass, else ``InvalidInputError``.

    ``subject`` names the catalog in messages.
    """
    try:
        yield
    except _PASSING as error:
        message = f"{subject} does not answer: {type(error).__name__}; try again, or see its log"
        raise UnavailableError(message) from error
    except (RESTError, NotImplementedError, requests.RequestException, ValueError) as error:
        message = f"{subject} refused the request: {error}"
        raise InvalidInputError(message) from error
