"""Result of one check of ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The object that was checked, whether it is well, and what was found or how to fix it."""

    what: str
    is_well: bool
    text: str
