"""Number of processor cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the cores to which this process is confined (``taskset``, the cpuset of a container), or else all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
