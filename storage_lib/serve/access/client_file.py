"""The file of clients: TOML, readable by its owner only.

    [[client]]
    name = "reports"
    token = "..."                       # at least 20 characters
    read = ["shop", "sales"]            # databases; "*" stands for all
    write = ["staging"]                 # what may be written may be read
    expires = 2027-01-01T00:00:00Z      # may be left out

A database that no list names is closed. The file is read again when it has changed, so that a token can be withdrawn
without a restart.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from storage_lib.errors import InvalidInputError
from storage_lib.io.local.private_text import read_private_text
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import EVERY, ServedClient

_LOGGER = logging.getLogger(__name__)
_WHAT = "file of clients"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DATABASE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_KEYS = frozenset({"name", "token", "read", "write", "expires"})
_TOKEN_LENGTH_MIN = 20
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
"""Characters of a bearer token (RFC 6750)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A client with its token, which ends at ``expires_millis`` (None: never)."""

    client: ServedClient
    token: str
    expires_millis: int | None = None


class ClientFile:
    """The clients of a file, as it is now. Thread-safe."""

    def __init__(self, path: str | Path) -> None:
        """Raise ``InvalidInputError`` if the file is not valid, ``OSError`` if it can't be read."""
        self._path = Path(path)
        self._lock = Lock()
        self._seen = self._state()
        self._credentials: tuple[Credential, ...] | None = self._parsed()

    def credentials(self) -> tuple[Credential, ...]:
        """Return all clients. Raises ``RefusedRequestError`` while the file is not valid: nobody is let in by guess."""
        with self._lock:
            state = self._state()
            if state != self._seen:
                self._seen = state
                self._credentials = self._read()
            if self._credentials is None:
                message = "the server's file of clients is not valid; its log says why"
                raise RefusedRequestError(Refusal.UNAVAILABLE, message)
            return self._credentials

    def _read(self) -> tuple[Credential, ...] | None:
        try:
            return self._parsed()
        except (InvalidInputError, OSError) as error:
            _LOGGER.error("all requests are refused: %s", error)  # noqa: TRY400  a traceback adds nothing
            return None

    def _parsed(self) -> tuple[Credential, ...]:
        return parse_clients(read_private_text(self._path, _WHAT), self._path)

    def _state(self) -> tuple[int, ...] | None:
        try:
            held = self._path.stat()
        except OSError:
            return None
        return held.st_mtime_ns, held.st_ctime_ns, held.st_size, held.st_ino


def parse_clients(text: str, path: Path) -> tuple[Credential, ...]:
    """Parse a file of clients. Raises ``InvalidInputError``, without a part of the text."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{_WHAT} {path} is not TOML: {_place_of(error)}"
        raise InvalidInputError(message) from None  # the error may show a token
    clients = value.get("client")
    if set(value) - {"client"} or not isinstance(clients, list) or not clients:
        message = f"{_WHAT} {path} has to be a list of [[client]] with name, token, read, write and expires"
        raise InvalidInputError(message)
    credentials = tuple(_credential(each, f"{_WHAT} {path}, client {number}") for number, each in enumerate(clients, 1))
    for what, found in (
        ("name", [each.client.name for each in credentials]),
        ("token", [each.token for each in credentials]),
    ):
        if len(set(found)) < len(found):
            message = f"{_WHAT} {path}: two clients have the same {what}"
            raise InvalidInputError(message)
    return credentials


def _credential(value: Any, place: str) -> Credential:
    if not isinstance(value, Mapping) or set(value) - _KEYS:
        message = f"{place}: unknown key; the keys are {', '.join(sorted(_KEYS))}"
        raise InvalidInputError(message)
    name, token = value.get("name"), value.get("token")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = f"{place}: name has to be text of at most 64 letters, digits, '_' and '-'"
        raise InvalidInputError(message)
    if not isinstance(token, str) or len(token) < _TOKEN_LENGTH_MIN or not _TOKEN.fullmatch(token):
        message = (
            f"{place} ({name}): token has to be text of at least {_TOKEN_LENGTH_MIN} characters, letters, digits and "
            "._~+/=-; `openssl rand -hex 32` prints one"
        )
        raise InvalidInputError(message)
    client = ServedClient(name=name, read=_databases(value, "read", place), write=_databases(value, "write", place))
    return Credential(client=client, token=token, expires_millis=_expiry(value.get("expires"), place))


def _databases(value: Mapping[str, Any], key: str, place: str) -> frozenset[str]:
    found = value.get(key, [])
    if not isinstance(found, list) or not all(
        isinstance(each, str) and (each == EVERY or _DATABASE.fullmatch(each)) for each in found
    ):
        message = f'{place}: {key} has to be a list of databases, such as ["shop"], or ["{EVERY}"] for all'
        raise InvalidInputError(message)
    return frozenset(found)


def _expiry(value: Any, place: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        message = f"{place}: expires has to be a time with a zone, such as 2027-01-01T00:00:00Z, without quotes"
        raise InvalidInputError(message)
    return int(value.timestamp() * 1000)


def _place_of(error: tomllib.TOMLDecodeError) -> str:
    found = re.search(r"\(at (line \d+, column \d+|end of document)\)", str(error))
    return f"error at {found.group(1)}" if found else "it can't be parsed"
