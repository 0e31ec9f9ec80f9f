"""Tells Airflow which texts are secrets: it replaces them by asterisks in logs and in what its pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["mask_options"]


def mask_options(options: Mapping[str, str], *, all_of_them: bool = False) -> None:
    """Register every secret among the options, and every password within an address; or ``all_of_them``."""
    from airflow.sdk.log import mask_secret

    from storage_lib.schema.options.secret_text import secrets_in
    from storage_lib.schema.options.table_options import is_secret

    for key, value in options.items():
        for secret in ([value] if all_of_them or is_secret(key) else []) + secrets_in(value):
            mask_secret(secret)
