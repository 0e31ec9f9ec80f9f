"""Tells which client sends a request: by its bearer token, or anybody on this machine for a server without tokens."""

from __future__ import annotations

import hashlib
import hmac
from typing import Protocol

from storage_lib.io.environment import Clock
from storage_lib.serve.access.access_tokens import is_issued, issue
from storage_lib.serve.access.client_file import ClientFile, Credential
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import EVERY, ServedClient


class Access(Protocol):
    """Names the clients of requests. Thread-safe."""

    needs_tokens: bool
    """Whether requests need a token; otherwise only programs of this machine may reach the server."""

    def client(self, authorization: str | None) -> ServedClient:
        """Return the client of an ``Authorization`` header. Raises ``RefusedRequestError`` for an unknown one."""

    def access_token(self, client_id: str, secret: str) -> tuple[str, int]:
        """Return an access token and its lifetime in milliseconds; ``RefusedRequestError`` for a wrong secret."""

    def renewed_token(self, token: str) -> tuple[str, int]:
        """Return a new access token for one that is still valid; ``RefusedRequestError`` for another."""


class LocalAccess:
    """Access without tokens: everybody may read all databases, and nobody may change them."""

    needs_tokens = False
    _ANYBODY = ServedClient(name="anybody", read=frozenset({EVERY}))

    def client(self, authorization: str | None) -> ServedClient:  # noqa: ARG002  a header is not needed
        """Return a client that may read everything."""
        return self._ANYBODY

    def access_token(self, client_id: str, secret: str) -> tuple[str, int]:  # noqa: ARG002
        """Refuse: this server has no clients."""
        raise _unauthenticated()

    def renewed_token(self, token: str) -> tuple[str, int]:  # noqa: ARG002
        """Refuse: this server has no clients."""
        raise _unauthenticated()


class TokenAccess:
    """Access by the tokens of a file. All comparisons take the same time for right and wrong tokens."""

    needs_tokens = True

    def __init__(self, file: ClientFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def client(self, authorization: str | None) -> ServedClient:
        """Return the client whose token, or access token, the header has."""
        return self._holder(_bearer(authorization)).client

    def access_token(self, client_id: str, secret: str) -> tuple[str, int]:
        """Return an access token of the client with this id, which is its name."""
        found = self._with_token(secret)
        if found is None or found.client.name != client_id:
            raise _unauthenticated()
        return issue(found, self._clock.now_millis())

    def renewed_token(self, token: str) -> tuple[str, int]:
        """Return a new access token of the client that has this one."""
        return issue(self._holder(token), self._clock.now_millis())

    def _holder(self, token: str) -> Credential:
        now = self._clock.now_millis()
        issued = [each for each in self._current() if is_issued(token, each, now)]
        found = self._with_token(token) or next(iter(issued), None)
        if found is None:
            raise _unauthenticated()
        return found

    def _with_token(self, token: str) -> Credential | None:
        """Return the client that has a token; compares with all of them, by digests of one length."""
        digest, found = _digest(token), None
        for each in self._current():
            if hmac.compare_digest(digest, _digest(each.token)):
                found = each
        return found

    def _current(self) -> list[Credential]:
        now = self._clock.now_millis()
        return [each for each in self._file.credentials() if each.expires_millis is None or now < each.expires_millis]


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        message = "a token is needed: send it as `Authorization: Bearer ...`"
        raise RefusedRequestError(Refusal.UNAUTHENTICATED, message)
    return token.strip()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _unauthenticated() -> RefusedRequestError:
    return RefusedRequestError(Refusal.UNAUTHENTICATED, "the token is unknown or has expired")
