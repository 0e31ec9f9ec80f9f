"""Refusal of secrets where options are stored or shown."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.table_options import is_secret_option

TO_THE_CATALOG = "give it to the catalog (the connection), not to the table"


def refuse_secret(key: str, value: str, what: str, remedy: str = TO_THE_CATALOG) -> None:
    """Raise ``InvalidInputError`` if ``key`` names a secret or ``value`` holds one.

    ``what`` names the option in the message, ``remedy`` says where the secret belongs.
    """
    if is_secret_option(key, value):
        message = f"{what} {key} is a secret, or holds one; {remedy}"
        raise InvalidInputError(message)
