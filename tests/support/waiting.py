"""Waits for another process, with a time limit so that a test fails instead of hanging."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(happened: Callable[[], object], *, seconds: float = 120) -> None:
    """Return as soon as ``happened()`` is true. A shorter limit would only fail on busy machines."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
