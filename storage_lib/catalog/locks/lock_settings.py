"""Parse the time-outs of a catalog's lock from the connection's options."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.catalog.locks.catalog_lock import LockSettings
from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.catalog_options import LOCK_ACQUIRE_TIMEOUT, LOCK_CHECK_MAX_SLEEP, LOCK_TIMEOUT
from storage_lib.schema.options.option_values import parse_millis


def lock_settings(options: Mapping[str, str]) -> LockSettings:
    """Return the settings in the options, or defaults. Raises ``InvalidInputError`` for an invalid duration."""
    default = LockSettings()
    return LockSettings(
        timeout=_seconds(options, LOCK_TIMEOUT, default.timeout),
        wait=_seconds(options, LOCK_ACQUIRE_TIMEOUT, default.wait),
        pause_max=_seconds(options, LOCK_CHECK_MAX_SLEEP, default.pause_max),
    )


def _seconds(options: Mapping[str, str], key: str, default: float) -> float:
    text = options.get(key)
    if text is None:
        return default
    try:
        return parse_millis(text) / 1000
    except ValueError as error:
        message = f"option {key} is {text!r}; {error}"
        raise InvalidInputError(message) from error
