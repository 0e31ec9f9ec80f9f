"""Temporary credentials of an S3 store, and what makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from storage_lib.errors import PermanentError


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCredentials:
    """Credentials that end at ``expires_millis`` (milliseconds since 1970). Their text contains no secrets."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_millis: int


class CredentialsRefusedError(PermanentError):
    """The token service does not let this server have such credentials."""


class TokenService(Protocol):
    """Makes credentials that can do what a policy says, and nothing more. Thread-safe."""

    partition: str
    """The part of AWS that names of resources in a policy begin with, such as ``aws``."""

    def credentials(self, *, session: str, policy: str, seconds: int) -> StoreCredentials:
        """Return credentials that live for ``seconds``; the store's audit log names them by ``session``.

        Raises ``UnavailableError`` if the service does not answer, or with something else than credentials;
        ``CredentialsRefusedError`` if it refuses.
        """
