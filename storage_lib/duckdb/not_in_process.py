"""The refusal of a statement that this process does not compute."""

from __future__ import annotations


class NotInProcessError(Exception):
    """Another engine has to compute the statement; the message says why. Nothing was written."""
