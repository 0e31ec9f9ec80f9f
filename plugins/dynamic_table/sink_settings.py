"""What an operator says about its sink, as the library's `SinkSpec`, with the secrets kept out of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_permanent", "secrets_apart"]


def secrets_apart(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Split options into open ones, ``{option: variable}`` for the secret ones, and ``{variable: value}``.

    The first two may lie on disk; the third goes into the environment of the sink's process.
    """
    from storage_lib.schema.table_options import is_secret

    secret = sorted(key for key in options if is_secret(key))
    variables = {key: f"DYNAMIC_TABLE_SECRET_{number}" for number, key in enumerate(secret)}
    shown = {key: value for key, value in options.items() if key not in variables}
    return (shown, variables, {variable: options[key] for key, variable in variables.items()})


def is_permanent(error: Any) -> bool:
    """Tell whether a heartbeat's ``error``, which begins with its class, would only come again."""
    from storage_lib import errors

    kind = getattr(errors, str(error or "").partition(":")[0].strip(), None)
    return isinstance(kind, type) and issubclass(kind, errors.PermanentError)
