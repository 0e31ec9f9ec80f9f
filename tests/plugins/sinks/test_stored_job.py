"""A directory that a state store names is taken only where a job of this project is."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dynamic_table.sinks.sink_job import SinkJob, open_job_directory
from dynamic_table.sinks.stored_job import job_below, job_of_task

if TYPE_CHECKING:
    from pathlib import Path

TASK = {"dag_id": "dag", "run_id": "run", "task_id": "sink", "map_index": 3}


@pytest.fixture
def job(tmp_path: Path) -> SinkJob:
    """Return a job below ``jobs`` that the task monitors; ``outside`` looks like another one."""
    found = open_job_directory(tmp_path / "jobs" / "db.t")
    found.note_task(dag_id="dag", run_id="run", task_id="sink", map_index=3)
    (tmp_path / "outside" / "job-0001").mkdir(parents=True)
    return found


def of_task(stored: object) -> SinkJob | None:
    return job_of_task(stored, dag_id="dag", run_id="run", task_id="sink", map_index=3)


def test_the_job_of_the_task_is_found_wherever_its_root_is(job: SinkJob, tmp_path: Path) -> None:
    stored = str(job.directory)
    (tmp_path / "link").symlink_to(tmp_path / "jobs")

    assert job_below(tmp_path / "jobs", stored) == job == of_task(stored)
    assert job_below(tmp_path / "link", str(tmp_path / "link" / "db.t" / "job-0001")) is not None
    assert job_of_task(stored, dag_id="dag", run_id="run", task_id="sink", map_index=2) is None


def test_no_other_spelling_of_a_directory_is_taken(job: SinkJob, tmp_path: Path) -> None:
    """Paths of random parts: below the root, up from it, through links, and to other directories."""
    root = tmp_path / "jobs"
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "db.t" / "job-0002").symlink_to(tmp_path / "outside" / "job-0001")
    chance = random.Random(3)  # noqa: S311  repeatable
    parts = ("db.t", "..", "job-0001", "job-0002", "linked", "outside", "jobs", ".", "job-x", "job-0001\0", "", "stop")
    begins = (str(tmp_path), str(root), "", "jobs", "/etc")
    for _ in range(3000):
        stored = "/".join([chance.choice(begins), *chance.choices(parts, k=chance.randint(0, 4))])
        for found in (job_below(root, stored), of_task(stored)):
            # A worker also takes one below the root that is missing: an old job that has been removed.
            assert found is None or found.directory.resolve() == job.directory or not found.directory.exists(), stored
            assert found is None or found.directory.resolve().is_relative_to(root), stored


@pytest.mark.parametrize("stored", [None, 3, "", ["/etc"], {"a": 1}, "/etc", b"/etc/job-0001"])
def test_a_stored_value_that_is_no_directory_of_a_job_is_none(tmp_path: Path, stored: object) -> None:
    assert job_below(tmp_path, stored) is None
    assert of_task(stored) is None
