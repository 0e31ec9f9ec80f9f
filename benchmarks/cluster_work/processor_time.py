"""Processor time of a process and its descendants, those that have ended included."""

from __future__ import annotations

import psutil  # type: ignore[import-untyped]


def processor_seconds(pid: int) -> float:
    """Return the seconds that the process ``pid`` and its descendants have used so far.

    The time of a descendant that has ended counts if its parent waited for it, as Spark's Python daemons do.
    """
    process = psutil.Process(pid)
    return sum(_seconds(each) for each in (process, *process.children(recursive=True)))


def _seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
