"""Registers secrets with Airflow, which then shows asterisks instead of them in its logs and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["mask_options"]


def mask_options(options: Mapping[str, str], *, all_of_them: bool = False) -> None:
    """Register secret option values and passwords within addresses; with ``all_of_them``, every value."""
    from airflow.sdk.log import mask_secret

    from storage_lib.schema.options.secret_text import secrets_in
    from storage_lib.schema.options.table_options import is_secret

    for key, value in options.items():
        for secret in ([value] if all_of_them or is_secret(key) else []) + secrets_in(value):
            mask_secret(secret)
