"""Jobs by the directories that state stores of tasks name.

Airflow's API lets users write into the state of a task, and what a stored directory names is stopped, killed or
attached to. So a stored directory is taken only where a job of this project can be: a worker, which knows the directory
of all jobs, takes those below it; the API server and the scheduler, which do not know it, take a directory in which the
job itself says that this task monitors it. No link below either is followed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from dynamic_table.sinks.sink_job import SinkJob

__all__ = ["job_below", "job_of_task"]

_JOB = re.compile(r"job-\d+")


def job_below(root: Path, stored: object) -> SinkJob | None:
    """Return the job in a directory that a state store names; None if that is not a job's one below ``root``."""
    path = _job_path(stored)
    if path is None or not path.is_relative_to(root):
        return None
    below = path.relative_to(root).parts
    between = [path, *path.parents][: len(below)]
    return None if ".." in below or any(part.is_symlink() for part in between) else SinkJob(path)


def job_of_task(stored: object, *, dag_id: str, run_id: str, task_id: str, map_index: int) -> SinkJob | None:
    """Return the job in the directory that a task's state store names; None unless that task monitors the job."""
    path = _job_path(stored)
    if path is None or not _is_own_directory(path):
        return None
    job = SinkJob(path)
    task = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    return job if job.task == task else None


def _job_path(stored: object) -> Path | None:
    """Return the path if its text can be a job's directory; looks at no file."""
    if not isinstance(stored, str) or "\0" in stored:
        return None
    path = Path(stored)
    return path if path.is_absolute() and _JOB.fullmatch(path.name) else None


def _is_own_directory(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.is_dir() and path.stat().st_uid == os.geteuid()
    except OSError:
        return False
