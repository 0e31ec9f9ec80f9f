"""Access tokens of OAuth2: what a client gets for its id and secret, and sends in place of the secret.

A token is ``<client>.<expiry in epoch milliseconds>.<MAC>``, where the MAC (HMAC-SHA-256) is keyed by the client's
secret. So the server stores nothing: a token outlives a restart, counts for all processes that serve the same file, and
ends when the secret is changed or its client is removed.
"""

from __future__ import annotations

import hashlib
import hmac

from storage_lib.serve.access.client_file import Credential

LIFETIME_MILLIS = 3_600_000
_PURPOSE = b"dynamic-table serve access token\0"


def issue(credential: Credential, now_millis: int) -> tuple[str, int]:
    """Return a new access token, and the milliseconds for which it is valid: never longer than its client's secret."""
    expires = now_millis + LIFETIME_MILLIS
    if credential.expires_millis is not None:
        expires = min(expires, credential.expires_millis)
    signed = f"{credential.client.name}.{expires}"
    return f"{signed}.{_mac(credential, signed)}", expires - now_millis


def is_issued(token: str, credential: Credential, now_millis: int) -> bool:
    """Return whether a token was issued to this client and has not expired."""
    signed, _, mac = token.rpartition(".")
    name, _, expires = signed.rpartition(".")
    is_genuine = hmac.compare_digest(mac.encode(), _mac(credential, signed).encode())
    return is_genuine and name == credential.client.name and expires.isdigit() and now_millis < int(expires)


def _mac(credential: Credential, signed: str) -> str:
    return hmac.new(credential.token.encode(), _PURPOSE + signed.encode(), hashlib.sha256).hexdigest()
