"""Client of a schema registry with Confluent's API, which maps the ids in Avro records to schemas.

The schema of an id never changes, so each process requests it only once.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpx

from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError
from storage_lib.log_store.codec.avro_cursor import with_names_spelled_out
from storage_lib.schema.options.table_options import REGISTRY_PREFIX

_KNOWN = ("url", "username", "password", "ca-location", "timeout-seconds")
_TIMEOUT_SECONDS = 20.0
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_ATTEMPTS = 2
_NOT_FOUND = 404
_UNAUTHORIZED = (401, 403)
_PASSING = 500
_REASON_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistry:
    """One registry. ``url`` is the root of its API, or several, comma-separated and tried in order. Picklable.

    Every call raises ``UnavailableError`` if no URL answers, ``InvalidInputError`` for a refused request.
    """

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_location: str | None = None
    timeout_seconds: float = _TIMEOUT_SECONDS

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SchemaRegistry:
        """Parse the ``log.schema-registry.*`` options, without that prefix. Raises ``InvalidInputError``."""
        unknown = [key for key in options if key not in _KNOWN]
        if unknown:
            known = ", ".join(REGISTRY_PREFIX + key for key in _KNOWN)
            message = f"option {REGISTRY_PREFIX}{unknown[0]} is unknown; known are {known}"
            raise InvalidInputError(message)
        url = options.get("url", "")
        if not url.startswith(("http://", "https://")):
            message = (
                f"option {REGISTRY_PREFIX}url is {url!r}; Avro in Kafka needs a schema registry: give the URL of its "
                "Confluent API, such as http://registry:8081"
            )
            raise InvalidInputError(message)
        if "@" in url:
            message = (
                f"option {REGISTRY_PREFIX}url holds a password; give {REGISTRY_PREFIX}username and .password instead"
            )
            raise InvalidInputError(message)
        try:
            timeout = float(options.get("timeout-seconds", _TIMEOUT_SECONDS))
        except ValueError as error:
            message = (
                f"option {REGISTRY_PREFIX}timeout-seconds is {options['timeout-seconds']!r}; give a number of seconds"
            )
            raise InvalidInputError(message) from error
        return cls(
            url=url,
            username=options.get("username"),
            password=options.get("password"),
            ca_location=options.get("ca-location"),
            timeout_seconds=timeout,
        )

    def schema(self, schema_id: int) -> str:
        """Return the schema with this id as JSON. Raises ``NotFoundError`` if it does not exist or is not Avro.

        References to types of other subjects are replaced by those types.
        """
        return _schema(self, schema_id)

    def register(self, subject: str, schema: str) -> int:
        """Return the id of a schema under a subject; register it as the next version if it is missing."""
        return _register(self, subject, schema)

    def latest(self, subject: str) -> str | None:
        """Return the newest schema of a subject; None if the subject does not exist."""
        found = self._ask("GET", f"/subjects/{_quoted(subject)}/versions/latest")
        return None if found is None else str(self._member(found, "schema"))

    def delete(self, subject: str) -> None:
        """Delete a subject with its versions if it exists."""
        for parameters in ("", "?permanent=true"):
            self._ask("DELETE", f"/subjects/{_quoted(subject)}{parameters}")
        _register.cache_clear()

    def fetch(self, schema_id: int) -> str:
        """Return a schema as ``schema`` does, bypassing the cache."""
        found = self._ask("GET", f"/schemas/ids/{schema_id}")
        if found is not None:
            self._member(found, "schema")
        if found is None or found.get("schemaType", "AVRO") != "AVRO":
            reason = "has no schema" if found is None else "has no Avro schema"
            message = f"the schema registry at {self.url} {reason} of number {schema_id}; is it the one of this topic?"
            raise NotFoundError(message)
        if not found.get("references"):
            return str(self._member(found, "schema"))
        referred: dict[tuple[str, int], Any] = {}
        self._gather(found["references"], referred)
        try:
            whole = with_names_spelled_out(json.loads(found["schema"]), list(referred.values()))
        except ValueError as error:
            message = f"the schema of number {schema_id} at {self.url} and those it refers to can't be put together"
            raise NotFoundError(f"{message}: {error}") from error
        return json.dumps(whole)

    def _gather(self, references: Sequence[Mapping[str, Any]], found: dict[tuple[str, int], Any]) -> None:
        """Collect the referenced schemas, each after the schemas that it references."""
        for each in references:
            place = (str(each["subject"]), int(each["version"]))
            if place in found:
                continue
            answer = self._ask("GET", f"/subjects/{_quoted(place[0])}/versions/{place[1]}")
            if answer is None:
                message = (
                    f"the schema registry at {self.url} has no version {place[1]} of subject {place[0]!r}, which "
                    "another schema refers to; register it there again"
                )
                raise NotFoundError(message)
            self._gather(answer.get("references") or (), found)
            found[place] = json.loads(answer["schema"])

    def post(self, subject: str, schema: str) -> int:
        """Register a schema as ``register`` does, bypassing the cache."""
        found = self._ask("POST", f"/subjects/{_quoted(subject)}/versions", {"schema": schema})
        return int(self._member(found, "id"))

    def _member(self, found: Any, key: str) -> Any:
        if not isinstance(found, dict) or key not in found:
            raise self._another_api()
        return found[key]

    def _another_api(self) -> InvalidInputError:
        message = f"{self.url} does not speak Confluent's schema registry API; check {REGISTRY_PREFIX}url and its path"
        return InvalidInputError(message)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return the answer as JSON; None for status 404."""
        failure = "no answer"
        for _ in range(_ATTEMPTS):
            for root in self.url.split(","):
                try:
                    answer = _client(self, os.getpid()).request(
                        method, root.strip().rstrip("/") + path, json=body, headers={"Content-Type": _MEDIA_TYPE}
                    )
                except httpx.HTTPError as error:
                    failure = f"{type(error).__name__}: {error}"
                    continue
                if answer.status_code < _PASSING:
                    return self._answered(answer, method, path)
                failure = f"status {answer.status_code}{_reason(answer)}"
        message = (
            f"the schema registry at {self.url} can't be reached to {method} {path} ({failure}); nothing was written. "
            f"Check {REGISTRY_PREFIX}url and that it runs, then run this again"
        )
        raise UnavailableError(message)

    def _answered(self, answer: httpx.Response, method: str, path: str) -> Any:
        if answer.status_code == _NOT_FOUND:
            return None
        if answer.status_code in _UNAUTHORIZED:
            message = (
                f"the schema registry at {self.url} refuses {self.username or 'requests without a login'} (status "
                f"{answer.status_code}); give {REGISTRY_PREFIX}username and {REGISTRY_PREFIX}password in the connection"
            )
            raise InvalidInputError(message)
        if answer.is_error:
            failure = f"status {answer.status_code}{_reason(answer)}"
            message = f"the schema registry at {self.url} refuses to {method} {path} ({failure})"
            raise InvalidInputError(message)
        try:
            return answer.json()
        except ValueError:
            raise self._another_api() from None


def _reason(answer: httpx.Response) -> str:
    """Return the reason that a registry gives; empty if another server answers, whose text is not for our errors."""
    try:
        found = answer.json()
    except ValueError:
        return ""
    if (
        not isinstance(found, dict)
        or set(found) != {"error_code", "message"}
        or not isinstance(found["error_code"], int)
    ):
        return ""
    return f": {str(found['message'])[:_REASON_MAX]}"


@lru_cache(maxsize=1024)
def _schema(registry: SchemaRegistry, schema_id: int) -> str:
    return registry.fetch(schema_id)


@lru_cache(maxsize=1024)
def _register(registry: SchemaRegistry, subject: str, schema: str) -> int:
    return registry.post(subject, schema)


@lru_cache(maxsize=16)
def _client(registry: SchemaRegistry, process: int) -> httpx.Client:  # noqa: ARG001  a forked child needs its own
    auth = None if registry.username is None else (registry.username, registry.password or "")
    verify: ssl.SSLContext | bool = True
    if registry.ca_location is not None:
        verify = ssl.create_default_context(cafile=registry.ca_location)
    return httpx.Client(auth=auth, timeout=registry.timeout_seconds, verify=verify)


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def canonical(schema: Mapping[str, Any]) -> str:
    """Return a schema's JSON in compact form; equal schemas give equal text."""
    return json.dumps(schema, separators=(",", ":"))
