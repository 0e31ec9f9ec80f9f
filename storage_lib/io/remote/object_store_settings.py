"""Open the object store of a URL with options: S3, Google Cloud Storage or Azure Blob Storage, through obstore.

An option is ``<store>.<setting>``, with obstore's name of the setting or the name in Paimon and Hadoop
(``s3.access-key``). Other settings come from the environment, as the store's own tools read it (``AWS_*``,
``GOOGLE_*``, ``AZURE_*``), or from the machine's role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import from_url

from storage_lib.errors import InvalidInputError
from storage_lib.io.remote.object_store_errors import first_line

if TYPE_CHECKING:
    from obstore.store import ObjectStore

STORE_OF_SCHEME = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "azure",
    "azure": "azure",
    "abfs": "azure",
    "abfss": "azure",
}
"""Prefix of a store's options, by URL scheme."""

_SPELLED = {
    "s3": {
        "access_key": "access_key_id",
        "secret_key": "secret_access_key",
        "security_token": "session_token",
    },
    "gs": {"credentials": "application_credentials", "endpoint": "base_url"},
    "azure": {"sas_token": "sas_key"},
}
_EXAMPLES = {
    "s3": ("endpoint", "region", "access-key", "secret-key", "timeout"),
    "gs": ("credentials", "endpoint", "timeout"),
    "azure": ("account-name", "account-key", "sas-token", "timeout"),
}
"""Settings that the error for an unknown setting names as examples."""
_OF_CLIENT = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_PATH_STYLE = ("path_style_access", "path_style")


def open_object_store(url: str, options: Mapping[str, str], *, repeats: bool = True) -> ObjectStore:
    """Open the store at ``url`` (scheme and bucket) without connecting.

    ``repeats=False`` returns a client without retries, whose errors describe the only attempt.
    Raises ``InvalidInputError`` for unknown settings.
    """
    scheme = urlsplit(url).scheme
    store = STORE_OF_SCHEME[scheme]
    settings = _settings_of(store, options)
    client: dict[str, Any] = {name: settings.pop(name) for name in _OF_CLIENT & settings.keys()}
    tries = settings.pop("max_retries", None)
    retries: dict[str, Any] = {} if tries is None else {"max_retries": _count(store, tries)}
    if not repeats:
        retries = {"max_retries": 0}
    endpoint = settings.get("endpoint") or settings.get("base_url") or ""
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", "true")
    try:
        return from_url(url, config=settings, client_options=client, retry_config=retries)  # type: ignore[call-overload]  # strings for all stores
    except (BaseError, ValueError, TypeError) as error:
        given = ", ".join(f"{store}.{name}" for name in sorted({**settings, **client}))
        message = (
            f"can't open {url} with the options {given}: {first_line(error).rstrip('.')}. "
            f"Options are named {store}.<setting>, with the settings of obstore's store, such as "
            f"{', '.join(f'{store}.{name}' for name in _EXAMPLES[store])}"
        )
        raise InvalidInputError(message) from error


def settings_by_store_name(url: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the store of ``url`` with the names that other users of Rust's object_store take.

    Settings of the store begin with its name (``aws_endpoint``); those of the connection have none (``timeout``).
    """
    store = STORE_OF_SCHEME[urlsplit(url).scheme]
    settings = _settings_of(store, options)
    if (settings.get("endpoint") or "").startswith("http://"):
        settings.setdefault("allow_http", "true")
    prefix = {"s3": "aws", "gs": "google", "azure": "azure"}[store]
    return {name if name in _OF_CLIENT else f"{prefix}_{name}": value for name, value in settings.items()}


def has_no_conditional_put(options: Mapping[str, str]) -> bool:
    """Whether the options say that an S3-compatible store ignores the conditions of puts."""
    return _settings_of("s3", options).get("conditional_put", "").strip().lower() == "disabled"


def _count(store: str, text: str) -> int:
    if not text.isdigit():
        message = f"option {store}.max-retries is {text!r}; it has to be a number, 0 or more"
        raise InvalidInputError(message)
    return int(text)


def _settings_of(store: str, options: Mapping[str, str]) -> dict[str, str]:
    prefix = f"{store}."
    spelled = _SPELLED[store]
    settings = {}
    for key, value in options.items():
        if key.startswith(prefix):
            name = key.removeprefix(prefix).replace("-", "_").replace(".", "_").lower()
            settings[spelled.get(name, name)] = str(value)
    for name in _PATH_STYLE:
        path_style = settings.pop(name, None)
        if path_style is not None:
            settings["virtual_hosted_style_request"] = str(path_style.lower() != "true").lower()
    return settings
